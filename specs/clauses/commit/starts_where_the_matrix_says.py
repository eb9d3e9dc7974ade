"""Where a new incarnation starts: the stored offset, else what the group's rule says; and never after an error.

| the look-up before the ADD | the incarnation's start |
|---|---|
| an offset | it |
| nothing stored, from the first | 0 |
| nothing stored, from the last | the queue's end; of a retry topic 0 |
| nothing stored, from a time | the first message since then; of a retry topic the end |
| an error, or no answer | none: the lane is not added |

Besides: the start is fixed once. The first pull of an incarnation that has looked the offset up again asks for what
it was told, or, where it was told that nothing is stored, for what the ADD said; after an error it does not pull. And
a young topic starts at 0: while its first message is young, a look-up is answered with an offset and not with
"nothing stored". (While the queue is empty "nothing stored" is right, and its end is 0. Who starts from the last
has no claim to what is stored between this answer and the question for the end.)

RocketMQ's client asks for the end a second time where both look-ups found nothing stored: `start-moved` is that, and
nothing else, a start from the end whose first pull asks for what lies beyond the ADD's value; profiles allow it. A
pull from anywhere else is `pulled-elsewhere`, and one after an error `pulled-after-error`.

What the end is nobody can say exactly: a start is below it where a send was acknowledged at or beyond the start,
longer than the bound for delays before the look-up. From a time: the client's default, half an hour before the
question; the last message that was acknowledged so long before the look-up, and sent since that time, is not skipped.
*Young*: sent within the last minute, so that the broker still holds it in memory. Messages that were sent before a
crash of the broker are left out, and a reset clears what is remembered. Nor does a message show anything that the
broker had removed on purpose by then: nobody can start there, and "nothing stored" is right once the first is gone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.commit.fetch_answers_the_last_commit import answered_offset
from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, NO_WALL_CLOCK_STEP, NOT_REMOVED, Premise
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import MS, at, who
from specs.history.row import Row
from specs.vocabulary import RETRY_PREFIX, Key, Kind, Outcome, Party

ID = "CMT-8"
TITLE = "the start matrix"
STATEMENT = (
    "A new incarnation starts at the stored offset, where nothing is stored at what the group's rule says, and never "
    "after an error; a young topic starts at 0."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (
    Premise(
        "clustering",
        "the members share the queues, and the broker keeps the offsets (configuration)",
        lambda info: info.config.message_model == "clustering",
        settings=frozenset({"message_model"}),
    ),
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_REMOVED,
    Premise(
        "default time", "a group that starts from a time takes the default, half an hour before"
    ),
)
SOURCES = ("docs/sources.md#start-matrix",)
RULES = ("WIR-14", "WIR-15")
KINDS = frozenset({Kind.SEND, Kind.FETCH_OFFSET, Kind.ADD, Kind.PULL, Kind.RESET})
SETTINGS = ("consume_from",)
NEEDS = frozenset({Kind.ADD})
LOOKS_BACK = True
EXCUSED_BY = frozenset({Kind.CRASH})

YOUNG_US = 60_000 * MS
HALF_AN_HOUR_US = 30 * 60_000 * MS
FROM_ZERO, FROM_END, FROM_TIME = "0", "the queue's end", "the first message since then"
START = {
    # (consume from, is it a retry topic)
    ("first", False): FROM_ZERO,
    ("first", True): FROM_ZERO,
    ("last", False): FROM_END,
    ("last", True): FROM_ZERO,
    ("timestamp", False): FROM_TIME,
    ("timestamp", True): FROM_END,
}


@dataclass(frozen=True, slots=True)
class WrongStart(Finding):
    """send: a message that shows it, where one does. wanted: the right start, for people."""

    send: Row | None
    lookup: Row
    add: Row
    wanted: str


@dataclass(frozen=True, slots=True)
class StartMoved(Finding):
    """Nothing was stored, neither at the first nor at the second look-up, and the pull asks for a later end."""

    first: Row
    add: Row
    lookup: Row
    pull: Row
    wanted: int


@dataclass(frozen=True, slots=True)
class PulledElsewhere(Finding):
    """add: what had fixed the start, where the look-up found nothing stored."""

    add: Row
    lookup: Row
    pull: Row
    wanted: int


@dataclass(frozen=True, slots=True)
class PulledAfterError(Finding):
    """The last look-up failed, and it pulls all the same."""

    add: Row
    lookup: Row
    pull: Row


@dataclass(frozen=True, slots=True)
class NotYoung(Finding):
    send: Row
    lookup: Row


class _Lane:
    """One group: who is about to start, and what it was told."""

    __slots__ = ("adds", "anchors", "lookups")

    def __init__(self) -> None:
        self.lookups: dict[
            str, tuple[Row, Row | None]
        ] = {}  # by client: its latest, and the last message then
        self.adds: dict[
            str, tuple[Row, Row | None]
        ] = {}  # not pulled yet; with a look-up that had found nothing
        self.anchors: dict[str, Row] = {}  # the latest look-up of such an incarnation


class QueueJudge(Judge):
    """Remembers the first and the last message of a queue, sends of the last moments, and who is about to start."""

    __slots__ = ("bound_us", "count", "first", "lanes", "last", "recent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.bound_us = self.config.delay_bound_ms * MS + context.info.clock_bound_us
        self.first: Row | None = None  # the send of offset 0
        self.last: Row | None = (
            None  # of the sends that everybody sees, the one with the highest offset
        )
        self.recent: list[
            tuple[int, int, Row]
        ] = []  # a heap of acknowledged sends that not everybody may see yet
        self.count = 0  # of them: ties go to the one that came first
        self.lanes: dict[str, _Lane] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND or row.group is None:
            return NOTHING
        lane = self.lanes.get(row.group)
        if lane is None:
            lane = self.lanes[row.group] = _Lane()
        client, name = row.client_id or "", row.incarnation
        match row.kind:
            case Kind.RESET:
                self.lanes[row.group] = _Lane()
            case Kind.FETCH_OFFSET if name is None:
                self._see(row.started_us)
                lane.lookups[client] = (row, self.last)
            case Kind.FETCH_OFFSET if name is not None:
                lane.anchors[name] = row
            case Kind.ADD if name is not None:
                lane.anchors.pop(name, None)
                found = lane.lookups.pop(client, None)
                if found is not None and not ended_before(found[0], row):
                    found = None
                lane.adds[name] = (
                    row,
                    found[0] if found is not None and answered_offset(found[0]) == -1 else None,
                )
                if found is not None and row.value is not None:
                    return self._added(*found, row, row.value)
            case Kind.PULL if name is not None:
                added, anchor = lane.adds.pop(name, None), lane.anchors.pop(name, None)
                if added is not None and anchor is not None and ended_before(anchor, row):
                    return self._pulled(*added, anchor, row)
            case _:
                pass
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.FETCH_OFFSET:
            return self._looked_up(row)
        # A delayed message lies in another queue first.
        if row.kind is Kind.SEND and row.outcome is Outcome.OK and not row.delay_level:
            if row.queue_offset == 0 and self.first is None:
                self.first = row
            if row.queue_offset is not None:
                self._see(over_us(row))
                self.count += 1
                heapq.heappush(self.recent, (over_us(row), self.count, row))
        return NOTHING

    def _see(self, now_us: int) -> None:
        """By now everybody sees what was acknowledged longer ago than the bound."""
        seen = []
        while self.recent and self.recent[0][0] + self.bound_us <= now_us:
            seen.append(heapq.heappop(self.recent)[1:])
        for _, row in sorted(seen):
            if self.last is None or (row.queue_offset or 0) > (self.last.queue_offset or 0):
                self.last = row

    def _added(self, lookup: Row, last: Row | None, row: Row, start: int) -> Iterable[Finding]:
        self.opportunities += 1
        told = answered_offset(lookup)
        if told is None:
            return (WrongStart(None, lookup, row, "nothing before the look-up has an answer"),)
        if told >= 0:
            return (
                ()
                if start == told
                else (WrongStart(None, lookup, row, f"the stored offset {told}"),)
            )
        wanted = START[self.config.consume_from, (row.topic or "").startswith(RETRY_PREFIX)]
        if wanted is FROM_ZERO:
            return () if start == 0 else (WrongStart(None, lookup, row, wanted),)
        if last is None or self.context.broker_died_since(row.broker, last):
            return NOTHING
        offset = last.queue_offset or 0
        if wanted is FROM_END:
            return (WrongStart(last, lookup, row, wanted),) if start <= offset else NOTHING
        since = (
            last.started_us >= row.started_us + self.context.info.clock_bound_us - HALF_AN_HOUR_US
        )
        if start <= offset or self.context.was_removed(row, offset):
            return NOTHING
        return (WrongStart(last, lookup, row, wanted),) if since else NOTHING

    def _pulled(self, add: Row, nothing: Row | None, lookup: Row, row: Row) -> Iterable[Finding]:
        told = answered_offset(lookup)
        if told is None:
            self.opportunities += 1
            return (PulledAfterError(add, lookup, row),)
        wanted = add.value if told < 0 else told
        if wanted is None or row.queue_offset is None:
            return NOTHING
        self.opportunities += 1
        if row.queue_offset == wanted:
            return NOTHING
        from_end = (
            START[self.config.consume_from, (row.topic or "").startswith(RETRY_PREFIX)] is FROM_END
        )
        if told < 0 and nothing is not None and from_end and row.queue_offset > wanted:
            return (StartMoved(nothing, add, lookup, row, wanted),)
        return (PulledElsewhere(add, lookup, row, wanted),)

    def _looked_up(self, row: Row) -> Iterable[Finding]:
        first, told = self.first, answered_offset(row)
        if first is None or told not in (-1, 0) or over_us(first) + self.bound_us > row.started_us:
            return NOTHING
        if self.context.was_removed(row, 0):
            return NOTHING
        young_us = YOUNG_US - self.context.info.clock_bound_us
        if first.started_us < row.started_us - young_us or self.context.broker_died_since(
            row.broker, first
        ):
            return NOTHING
        self.opportunities += 1
        return (NotYoung(first, row),) if row.outcome is Outcome.REFUSED else NOTHING


judge = QueueJudge


def explain(found: WrongStart | StartMoved | PulledElsewhere | PulledAfterError | NotYoung) -> str:
    lookup = found.lookup
    failed = (
        f"the error {lookup.code}"
        if lookup.outcome is Outcome.REFUSED and lookup.code
        else "no answer"
    )
    told = {None: failed, -1: "that nothing is stored"}.get(
        answered_offset(lookup), f"{lookup.value}"
    )
    heard = f"{who(lookup)} asked at {at(lookup)} for the offset stored for {lookup.lane} and heard {told}"
    if isinstance(found, NotYoung):
        return f"{heard}, although the queue's first message {found.send.message_id} was sent at {at(found.send)}"
    if isinstance(found, PulledAfterError):
        return f"{heard}; its first pull, at {at(found.pull)}, asked for {found.pull.queue_offset} all the same"
    if isinstance(found, StartMoved | PulledElsewhere):
        pull = found.pull
        return f"{heard}; its first pull, at {at(pull)}, asked for {pull.queue_offset} instead of {found.wanted}"
    shown = (
        ""
        if found.send is None
        else f" (offset {found.send.queue_offset} was sent at {at(found.send)})"
    )
    return f"{heard}; it started at {found.add.value} at {at(found.add)} instead of {found.wanted}{shown}"
