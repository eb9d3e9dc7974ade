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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.rows import over_us
from specs.clauses.words import MS, at, ms, who
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


@dataclass(frozen=True, slots=True)
class NotRenewed(Finding):
    """last: the request, or the ADD, after which the client did not ask. later: what it did instead, or at last."""

    last: Row
    later: Row


class LaneJudge(Judge):
    """Remembers, for each client at work on the lane, when it last asked for the lease."""

    __slots__ = ("answer_us", "bound_us", "last")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = self.config
        self.bound_us = (config.lock_interval_ms + config.schedule_slack_ms) * MS
        self.answer_us = config.delay_bound_ms * MS
        self.last: dict[str, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        client = row.client_id
        if client is None:
            return NOTHING
        last = self.last.get(client)
        if row.kind is Kind.ADD:
            if row.incarnation is not None:
                self.last[client] = row
            return NOTHING
        if row.kind is Kind.DROP:
            self.last.pop(client, None)
            return NOTHING
        found: Iterable[Finding] = NOTHING
        if last is not None and last.incarnation == row.incarnation:
            is_late = self._is_late(client, last, row)
            if is_late or row.kind is Kind.LOCK:
                if self._is_hindered(client, last, row):
                    self.last.pop(client)
                else:
                    self.opportunities += 1
                    if is_late:
                        del self.last[client]
                        found = (NotRenewed(last, row),)
        if row.kind is Kind.LOCK:
            if row.incarnation is not None:
                self.last[client] = row
            else:
                self.last.pop(client, None)
        return found

    def _is_late(self, client: str, last: Row, row: Row) -> bool:
        """Is it more than an interval ago, and a round of requests to all of the client's brokers?"""
        spare_us = self.bound_us - (row.started_us - over_us(last))
        return (
            spare_us < 0 and spare_us + self.answer_us * max(1, self.context.brokers_of(client)) < 0
        )

    def _is_hindered(self, client: str, last: Row, row: Row) -> bool:
        """May something have kept the client from asking since, or its requests from being seen?"""
        context = self.context
        return (
            context.is_leaving(client, row.group) is not None
            or context.is_of_an_old_life(client, row.group, last)
            or context.broker_died_since(row.broker, last)
            or context.is_disturbed(last, row.started_us)  # a pause of either of them disturbs it
        )


judge = LaneJudge


def explain(found: NotRenewed) -> str:
    last, later = found.last, found.later
    begun = "added it" if last.kind is Kind.ADD else "asked for its lease"
    age = ms(later.started_us - over_us(last))
    return (
        f"{who(later)} was at work on {later.lane} at {at(later)} ({later.kind}), {age} after it had {begun}, and had "
        "not asked for its lease since"
    )
