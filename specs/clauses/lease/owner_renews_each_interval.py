"""While a client works on a lane it asks for its lease again each lock interval.

Measured from the end of the last request (or from the ADD) to whatever the incarnation does next: it asks again,
pulls, delivers or commits. It must have asked by the interval (`lock_interval_ms`), the slack of a timer
(`schedule_slack_ms`) and, once for each broker of which the client has ever added a lane, the time that an answer may
take (`delay_bound_ms`): it asks one broker after the other and waits for each, so that another one that does not
answer puts this request off. It counts that it asks, not what it is answered.
Of a client's incarnations of a lane only the one that it added last is judged. Silent where a request does not name
its incarnation, in a shutdown (some clients stop renewing first; one that names no group is of all), and once the
lane was dropped: then nothing is owed any more. Silent as well where something may have hindered the client since the
last request, or hidden its requests from who looks on between it and the broker: a crash or a pause of either, or a
fault of the link, also one that was over at most the time of an answer before that request. It is judged again from
its next request on.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, each_lane
from specs.facts.segments import MS, NO_TEXT
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "LSE-13"
TITLE = "the owner renews each interval"
STATEMENT = "A client that works on a lane asks for its lease again each lock interval."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    Premise(
        "at work",
        "the client is not shutting down, did not crash, and has not dropped the lane",
        told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
    ),
    Premise(
        "link at work",
        "no fault of the client's link to the broker since; a recorded one silences the clause",
        told_by=frozenset({Kind.FAULT}),
    ),
)
SOURCES = ("docs/sources.md#client-leases",)
KINDS = frozenset({Kind.ADD, Kind.DROP, Kind.LOCK, Kind.DELIVER, Kind.PULL, Kind.COMMIT})
SETTINGS = ("lock_interval_ms",)
NEEDS = frozenset({Kind.ADD, Kind.LOCK})
TOLD_OF_REFUSED_COMMITS = True
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class NotRenewed(Finding):
    """last: the request, or the ADD, after which the client did not ask. later: what it did instead, or at last."""

    last: Row
    later: Row


class Lane(Machine):
    """When each client at work on the lane last asked for its lease.

    A stretch is taken whole when all of it lies within the bound since then.
    """

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        config = self.config
        self.interval_us = (config.lock_interval_ms + config.schedule_slack_ms) * MS
        self.last: dict[int, Op] = {}

    def takes(self, stretch: Stretch) -> bool:
        if self._is_late(stretch.first, stretch.latest_us):
            return False
        return not any(self._is_late(op, op.started) for op in self.inside)

    def _is_late(self, op: Op, at_us: int) -> bool:
        """Is it more than an interval ago, and a round of requests to all of the client's brokers?"""
        last = self.last.get(op.client)
        if last is None or last.incarnation != op.incarnation:
            return False
        due_us = last.over_us + self.interval_us
        return at_us > due_us and at_us > due_us + self._round_us(op.client)

    def _round_us(self, client: int) -> int:
        """So long requests to each broker of the client may take, one after the other."""
        asked = self.context.brokers_of(self.lane.name(client), self.now)
        return max(asked, 1) * self.config.delay_bound_ms * MS

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            if op.incarnation != NO_TEXT:
                self.last[op.client] = op
        elif op.kind is Kind.DROP:
            self.last.pop(op.client, None)
        else:
            self._works(op)

    def _is_hindered(self, op: Op, last: Op) -> bool:
        """May something have kept the client from asking since, or its requests from being seen?"""
        return (
            self.leaving(op.client)
            or self.is_of_an_old_life(op.client, last)
            or self.broker_died_since(last)
            or self.context.is_disturbed(self.sending(last), op.started, self.now)
        )

    def _works(self, op: Op) -> None:
        last, late = self.last.get(op.client), self._is_late(op, op.started)
        asks = op.kind is Kind.LOCK
        if last is not None and (late or (asks and last.incarnation == op.incarnation)):
            if self._is_hindered(op, last):
                del self.last[op.client]
            else:
                self.stakes += 1
                if late:
                    del self.last[op.client]
                    self.broken(NotRenewed, last=last, later=op)
        if asks:
            if op.incarnation != NO_TEXT:
                self.last[op.client] = op
            else:
                self.last.pop(op.client, None)


judge = each_lane(Lane, KINDS - {Kind.PULL}, lease=True, asides=(Kind.PULL,))


def explain(found: NotRenewed) -> str:
    last, later = found.last, found.later
    begun = "added it" if last.kind is Kind.ADD else "asked for its lease"
    age = ms(later.started_us - over_us(last))
    return (
        f"{who(later)} was at work on {later.lane} at {at(later)} ({later.kind}), {age} after it had {begun}, and had "
        "not asked for its lease since"
    )
