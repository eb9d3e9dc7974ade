"""ORD-4 over columns: only the first delivery of an incarnation is a question; stretches pass by."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Op, ends_as
from specs.facts.progress import PROGRESS_KINDS, Incarnation, Progress, queue_kernel
from specs.facts.segments import NO_TEXT, NONE
from specs.vocabulary import Kind, Outcome


class Stored(NamedTuple):
    """An offset that was stored: the row that shows it, how high it can be at most, and the commit that says so."""

    op: Op
    offset: int
    named: Op | None


class Group(Progress):
    """One group on the queue, and what is known of its stored offset."""

    ENDS = Progress.ENDS | ends_as([Kind.COMMIT], [Outcome.OK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.stored: Stored | None = None
        self.looked: dict[int, Stored | None] = {}  # client → what was known when it looked
        self.named: Op | None = None  # the highest commit that was not refused
        self.added: dict[int, int] = {}  # by client: the begin of its last ADD
        digest = lane.digest
        told = digest.rows.told_ahead.get(int(digest.rows.lane[lane.place]))
        self.ahead = [] if told is None else digest.ops(told)

    def _better(self, known: Stored | None, other: Stored | None) -> Stored | None:
        """The one with the higher offset; one from before a crash of the broker counts for nothing."""
        if known is None or self.broker_died_since(known.op):
            return other
        if other is None or self.broker_died_since(other.op) or other.offset <= known.offset:
            return known
        return other

    def begins(self, op: Op) -> None:
        if op.kind is Kind.COMMIT:
            higher = self.named is None or op.value > self.named.value
            if op.value != NONE and higher:
                self.named = op
            return
        if op.kind is Kind.FETCH_OFFSET:
            self.looked[op.client] = self.stored
        super().begins(op)
        if op.kind is Kind.ADD and op.incarnation != NO_TEXT:
            self.added[op.client] = op.begin
            mine = self.incarnation(op.incarnation)
            mine.proof = self.looked.pop(op.client) if op.client in self.looked else self.stored

    def first_delivery(self, mine: Incarnation, op: Op) -> None:
        if mine.void or self.was_reset:
            return
        stored = self.stored if mine.add is None else mine.proof
        if stored is None or self.broker_died_since(stored.op):
            return
        shown = [stored.op.place] if stored.named is None else [stored.op.place, stored.named.place]
        self.stakes += 1
        choices: list[tuple[list[int], int | None]] = []
        kept = self.context.kept_from(self.lane.digest.rows.queue_of(self.lane.place), self.now)
        told = self._passed_over(mine, op)
        for offset in self.owed(max(stored.offset, kept), op.offset):
            if any(pull.offset <= offset < pull.value for pull in told):
                continue
            rows = self.unfinished.get(offset)
            if rows:
                choices.append(([*shown, rows[-1].place, *self.drop_of(rows[-1]), op.place], None))
                break
            if self.sends.row(self.queue, offset, self.now) is not None:
                choices.append(([*shown, op.place], offset))
                if not self.shared:
                    break
        self.claim(choices)

    def _passed_over(self, mine: Incarnation, op: Op) -> list[Op]:
        """The pulls of the incarnation, or of its client, that the broker told to go on further ahead."""
        found = []
        for pull in self.ahead:
            named = pull.incarnation != NO_TEXT
            is_own = pull.incarnation == op.incarnation if named else pull.client == op.client
            add = NONE if mine.add is None else mine.add.begin
            since = add if named else self.added.get(op.client, NONE)
            if is_own and since < pull.end < op.begin:
                found.append(pull)
        return found

    def ends(self, op: Op) -> None:
        if op.kind is Kind.COMMIT:
            if op.outcome is Outcome.OK and op.value >= 0:
                self.stored = self._better(self.stored, Stored(op, op.value, None))
            return
        super().ends(op)
        if op.kind is Kind.FETCH_OFFSET and op.outcome is Outcome.OK and op.value >= 0:
            told = Stored(op, op.value, None)
            if (
                self.context.info.closed_world
                and self.named is not None
                and self.named.value < op.value
            ):
                told = Stored(op, self.named.value, self.named)
            self.stored = self._better(self.stored, told)
            if op.client in self.looked:
                self.looked[op.client] = self._better(self.looked[op.client], told)
            if op.incarnation != NO_TEXT:
                mine = self.incarnation(op.incarnation)
                mine.proof = self._better(mine.proof, told)


TWIN = Twin(
    "ORD-4", (*OP_COLUMNS, "delay_level"), queue_kernel(Group, (*PROGRESS_KINDS, Kind.COMMIT))
)
find = TWIN.find


# ---- what breaks the clause, planted


def skip_at_handover(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        calls = [row for row in rows if row.kind is Kind.DELIVER]
        lane = trace.lanes[add.lane]
        looked = [r for r in lane if r.kind is Kind.FETCH_OFFSET and r.seq_begin < add.seq_begin]
        known = looked and looked[-1].outcome is Outcome.OK and looked[-1].value == add.value
        if (
            not calls
            or not known
            or looked[-1].client_id != add.client_id
            or calls[0].queue_offset != add.value
        ):
            continue
        if (add.topic, add.broker, add.queue_id, add.value) not in trace.sent:
            continue
        if any(
            r.kind is Kind.DELIVER and r.queue_offset == add.value and r.seq_begin < add.seq_begin
            for r in lane
        ):
            continue
        gone = {
            r.seq_begin
            for r in rows
            if r.kind in (Kind.DELIVER, Kind.DEAD_LETTER) and r.queue_offset == add.value
        }
        next_call = next((row for row in calls if row.seq_begin not in gone), None)
        if next_call is not None:
            about = (looked[-1].seq_begin, next_call.seq_begin)
            yield partial(trace.without, gone, about)


DEFECTS = (
    Mutant(
        "skip-at-handover", "ORD-4", "a new owner leaves its first message out", skip_at_handover
    ),
)
