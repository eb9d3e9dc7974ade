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

from dataclasses import dataclass

import numpy as np

from specs.clauses.commit.fetch_answers_the_last_commit import answered_offset
from specs.clauses.judging import Finding
from specs.clauses.premises import NO_RESET, NO_WALL_CLOCK_STEP, NOT_REMOVED, Premise
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    each_lane,
    ended_before,
    ends_as,
)
from specs.facts.progress import Sends
from specs.facts.segments import MS, NO_TEXT, NONE
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
COLUMNS = (*OP_COLUMNS, "delay_level")

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


YOUNG_US = 60_000 * MS
HALF_AN_HOUR_US = 30 * 60_000 * MS


class Lane(Machine):
    """Who is about to start, and what it was told."""

    ENDS = ends_as([Kind.FETCH_OFFSET])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        rows = lane.digest.rows
        self.bound_us = self.config.delay_bound_ms * MS + self.context.info.clock_bound_us
        self.sent = rows.shared(Sends).of_queue(int(rows.queue[lane.place]))
        first = self.sent[rows.offset[self.sent] == 0]
        self.first = int(first[np.argmin(rows.end[first])]) if len(first) else None
        self.start = START[self.config.consume_from, self.lane.topic.startswith(RETRY_PREFIX)]
        self.lookups: dict[int, tuple[Op, int | None]] = {}
        self.adds: dict[
            int, tuple[Op, Op | None]
        ] = {}  # with a look-up before it that had found nothing stored
        self.anchors: dict[int, Op] = {}

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.lookups, self.adds, self.anchors = {}, {}, {}
        elif op.kind is Kind.FETCH_OFFSET:
            if op.incarnation == NO_TEXT:
                self.lookups[op.client] = (op, self._last_seen(op))
            else:
                self.anchors[op.incarnation] = op
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.anchors.pop(op.incarnation, None)
            lookup, last = self.lookups.pop(op.client, (None, None))
            if lookup is not None and not ended_before(lookup, op):
                lookup = None
            empty = lookup is not None and answered_offset(lookup) == -1
            self.adds[op.incarnation] = (op, lookup if empty else None)
            if lookup is not None and op.value != NONE:
                self._added(lookup, last, op)
        elif op.kind is Kind.PULL:
            add, nothing = self.adds.pop(op.incarnation, (None, None))
            anchor = self.anchors.pop(op.incarnation, None)
            if add is not None and anchor is not None and ended_before(anchor, op):
                self._pulled(add, nothing, anchor, op)

    def _last_seen(self, lookup: Op) -> int | None:
        """Of the sends that were acknowledged longer ago than the bound, the one with the highest offset."""
        rows = self.lane.digest.rows
        seen = self.sent[
            (rows.end[self.sent] < lookup.begin)
            & (rows.ended[self.sent] + self.bound_us <= lookup.started)
        ]
        if not len(seen):
            return None
        highest = seen[rows.offset[seen] == rows.offset[seen].max()]
        return int(highest[np.argmin(rows.end[highest])])

    def _lives(self, send: int) -> bool:
        rows = self.lane.digest.rows
        epoch = int(rows.number("broker_epoch")[send])
        return not self.context.broker_died_since(
            self.broker, int(rows.begin[send]), epoch, self.now
        )

    def _added(self, lookup: Op, last: int | None, op: Op) -> None:
        self.stakes += 1
        told = answered_offset(lookup)
        if told is None or told >= 0 or self.start == FROM_ZERO:
            if op.value != (told if told is None else max(told, 0)):
                wanted = "nothing before the look-up has an answer"
                if told is not None:
                    wanted = f"the stored offset {told}" if told >= 0 else FROM_ZERO
                self.broken(WrongStart, {"wanted": wanted}, send=None, lookup=lookup, add=op)
            return
        rows = self.lane.digest.rows
        if last is None or not self._lives(last):
            return
        offset = int(rows.offset[last])
        since = (
            int(rows.started[last])
            >= op.started + self.context.info.clock_bound_us - HALF_AN_HOUR_US
        )
        kept = self._kept_from()
        if op.value <= offset if self.start == FROM_END else since and kept <= offset < op.value:
            self.findings.shown(
                WrongStart,
                {"send": last, "lookup": lookup.place, "add": op.place},
                {"wanted": self.start},
            )

    def _kept_from(self) -> int:
        """The minimum that the broker had announced for the queue by now."""
        return self.context.kept_from(self.lane.digest.rows.queue_of(self.lane.place), self.now)

    def _pulled(self, add: Op, nothing: Op | None, lookup: Op, op: Op) -> None:
        told = answered_offset(lookup)
        wanted = add.value if told is not None and told < 0 else told
        if told is not None and (wanted == NONE or op.offset == NONE):
            return
        self.stakes += 1
        if told is None:
            self.broken(PulledAfterError, add=add, lookup=lookup, pull=op)
        elif op.offset != wanted:
            also = {"wanted": wanted}
            later_end = self.start == FROM_END and told < 0 and op.offset > add.value
            if later_end and nothing is not None:
                self.broken(StartMoved, also, first=nothing, add=add, lookup=lookup, pull=op)
            else:
                self.broken(PulledElsewhere, also, add=add, lookup=lookup, pull=op)

    def ends(self, op: Op) -> None:
        if (
            op.kind is not Kind.FETCH_OFFSET
            or self.first is None
            or answered_offset(op) not in (-1, 0)
        ):
            return
        rows, first = self.lane.digest.rows, self.first
        if rows.end[first] > op.end or rows.ended[first] + self.bound_us > op.started:
            return
        young_us = YOUNG_US - self.context.info.clock_bound_us
        if (
            rows.started[first] >= op.started - young_us
            and self._lives(first)
            and not self._kept_from()
        ):
            self.stakes += 1
            if op.outcome is Outcome.REFUSED:
                self.findings.shown(NotYoung, {"send": first, "lookup": op.place})


judge = each_lane(Lane, KINDS, lease=True, asides=(Kind.PULL,))


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
