"""While a lane waits for a thread, no other lane of its client keeps one for longer than the cap and one call.

Lanes wait for a thread in line. One that has had its thread for the cap on continuous work (60 s by default) starts
no further call before the others in line have had their turn; so with L lanes and T threads none waits for longer
than ceil(L / T) times the cap and one call. That sum follows from what is judged here, one turn: a lane *waits* from
the end of its incarnation's first pull that found messages until its first call. Another lane of the same client that
starts a call in that time starts none more than the cap later while the first one still waits. A pull that found none
and is told to go on further ahead begins no waiting, nor does any pull of a group of which a member filters, as its
start tells: what it found the client may not want.

A lane without a fresh lease is not in line: an unlock, a refusal, or no grant within the client's limit ends its
waiting, and so do its drop, a reset, and the shutdown, the death or a pause of its client. A lane that was dropped and
added again while a call of its earlier life still runs waits for that call, and not for a thread: it is not judged.
The slack of a timer is granted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import goes_ahead
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import (
    NO_FILTER,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.rows import over_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LIV-3"
TITLE = "no lane keeps its thread"
STATEMENT = (
    "No lane waits for a thread longer than ceil(lanes / threads) turns; a turn is the cap on continuous work and one "
    "call."
)
PARTY = Party.CLIENT
KEY = Key.GROUP
IN_LINE = Premise(
    "in line",
    "the client neither died nor began to shut down while the lane waited",
    told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
)
PREMISE = (ORDERLY, NO_WALL_CLOCK_STEP, NOT_PAUSED, IN_LINE, NO_RESET, NO_FILTER)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.FEW_THREADS),)
KINDS = frozenset(
    {Kind.ADD, Kind.DROP, Kind.PULL, Kind.DELIVER, Kind.LOCK, Kind.UNLOCK, Kind.RESET}
)
SETTINGS = ("client_lease_ms", "continuous_ms")
NEEDS = frozenset({Kind.ADD, Kind.DELIVER, Kind.PULL})
EXCUSED_BY = frozenset({Kind.JOIN})


@dataclass(frozen=True, slots=True)
class Starved(Finding):
    """pull: since when the lane waits. first, later: calls of one other lane."""

    add: Row
    pull: Row
    first: Row
    later: Row


Place = tuple[str | None, str | None, int | None]
"""Topic, broker, queue: of one group the lane."""
Name = tuple[str, Place]
"""An incarnation of a lane."""


class _Waiting:
    """One incarnation that was not called yet. firsts: the first call of each other one since it waits."""

    __slots__ = ("add", "firsts", "granted", "place", "pull")

    def __init__(self, add: Row) -> None:
        self.add = add
        self.place: Place = (add.topic, add.broker, add.queue_id)
        self.pull: Row | None = None
        self.granted: Row | None = None  # its last grant
        self.firsts: dict[Name, Row] = {}


class GroupJudge(Judge):
    """Remembers, for each client, its lanes that were not called yet, and the grants of all of them."""

    __slots__ = ("cap_us", "granted", "last_op", "lease_us", "running", "waiting")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.cap_us = (self.config.continuous_ms + self.config.schedule_slack_ms) * MS
        self.lease_us = self.config.client_lease_ms * MS
        self.waiting: dict[str, dict[Name, _Waiting]] = {}  # by client
        self.granted: dict[tuple[str, Place], Row] = {}
        self.last_op: dict[Name, int] = {}
        self.running: dict[tuple[str, Place], dict[int, Row]] = {}  # calls, by client and lane

    def begins(self, row: Row) -> Iterable[Finding]:
        client = row.client_id or ""
        if row.kind is Kind.RESET:
            self.waiting.clear()
        elif row.kind is Kind.UNLOCK:
            self._out_of_line(client, row)
        if row.incarnation is None:
            return NOTHING
        name: Name = (row.incarnation, (row.topic, row.broker, row.queue_id))
        if row.kind is Kind.DELIVER:
            self.running.setdefault((client, name[1]), {})[row.seq_begin] = row
        match row.kind:
            case Kind.ADD:
                new = self.waiting.setdefault(client, {})[name] = _Waiting(row)
                new.granted = self.granted.get((client, new.place))
            case Kind.DROP:
                self.waiting.get(client, {}).pop(name, None)
            case Kind.DELIVER if self.last_op.get(name) != row.op_id:
                self.last_op[name] = row.op_id
                mine = self.waiting.get(client)
                if mine:
                    mine.pop(name, None)
                    return self._called(mine, name, row)
            case _:
                pass
        return NOTHING

    def _called(self, waiting: dict[Name, _Waiting], name: Name, row: Row) -> Iterable[Finding]:
        found: list[Finding] = []
        for each in waiting.values():
            if each.pull is None:
                continue
            first = each.firsts.setdefault(name, row)
            if first is row:
                continue
            self.opportunities += 1
            if row.started_us > first.started_us + self.cap_us and self._in_line(each, row):
                found.append(Starved(each.add, each.pull, first, row))
                each.firsts[name] = row
        return found

    def _in_line(self, each: _Waiting, row: Row) -> bool:
        """Has the lane been in line all the time?"""
        pull, granted, context = each.pull, each.granted, self.context
        since_us = row.started_us if pull is None else over_us(pull)
        if context.is_leaving(row.client_id, row.group) or context.client_died_since(
            row.client_id, each.add
        ):
            return False
        if context.paused_since(row.client_id, since_us):
            return False
        return granted is None or row.started_us <= over_us(granted) + self.lease_us

    def ends(self, row: Row) -> Iterable[Finding]:
        client = row.client_id or ""
        if row.kind is Kind.LOCK:
            self._answered(client, row)
        elif row.kind is Kind.DELIVER:
            self.running.get((client, (row.topic, row.broker, row.queue_id)), {}).pop(
                row.seq_begin, None
            )
        elif row.kind is Kind.PULL and row.outcome is Outcome.OK and row.incarnation is not None:
            name: Name = (row.incarnation, (row.topic, row.broker, row.queue_id))
            each = self.waiting.get(client, {}).get(name)
            found = (
                row.value is not None
                and row.queue_offset is not None
                and row.value > row.queue_offset
                and not goes_ahead(row)
                and not self.context.is_filtered(row.group or "")
            )
            if each is not None and each.pull is None and found:
                if self._works_still(client, each):
                    del self.waiting[client][name]
                else:
                    each.pull = row
        return NOTHING

    def _works_still(self, client: str, each: _Waiting) -> bool:
        """Does the client still run a call that it began in an earlier life of the lane?"""
        calls = self.running.get((client, each.place), {}).values()
        return not all(
            self.context.is_of_an_old_life(client, each.add.group, call) for call in calls
        )

    def _answered(self, client: str, row: Row) -> None:
        place: Place = (row.topic, row.broker, row.queue_id)
        if row.outcome is Outcome.REFUSED:
            self._out_of_line(client, row)
        elif row.outcome is Outcome.OK:
            before = self.granted.get((client, place))
            if before is not None and over_us(row) > over_us(before) + self.lease_us:
                self._out_of_line(client, row)
            self.granted[client, place] = row
            for each in self.waiting.get(client, {}).values():
                if each.place == place:
                    each.granted = row

    def _out_of_line(self, client: str, row: Row) -> None:
        """The lane loses its place in line."""
        mine = self.waiting.get(client, {})
        for name in [
            name
            for name, each in mine.items()
            if each.place == (row.topic, row.broker, row.queue_id)
        ]:
            del mine[name]


judge = GroupJudge


def explain(found: Starved) -> str:
    pull, first, later = found.pull, found.first, found.later
    return (
        f"{who(pull)} had messages of {pull.lane} from {at(pull)} on, and no thread for them: its calls for "
        f"{first.lane} went on from {at(first)} to {at(later)}, {ms(later.started_us - first.started_us)}, in one turn"
    )
