"""CMT-13 over columns: of a stretch only the last message that it finished matters."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.findings import Findings
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, machine_kernel
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.progress import certainly_acknowledges
from spark_checkers.segments import NO_TEXT, NONE
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Incarnation:
    """One incarnation: the highest message that it finished before its drop, and its commits.

    committed: the highest value that was not refused. open: the commits without an answer yet.
    """

    __slots__ = ("add", "committed", "dropped", "finished", "open")

    def __init__(self, add: Op) -> None:
        self.add = add
        self.finished: Op | None = None
        self.committed = -1
        self.open: dict[int, int] = {}
        self.dropped = False


class Lane(Machine):
    """The incarnations that were added and have not unlocked."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.incarnations: dict[int, Incarnation] = {}

    def takes(self, stretch: Stretch) -> bool:
        mine = self.incarnations.get(stretch.first.incarnation)
        last = stretch.finished_to - 1
        if mine is None or mine.dropped or last < stretch.first.offset:
            return True
        if not stretch.first.has_mode:  # what its calls finished each of them says
            return False
        if mine.finished is None or last > mine.finished.offset:
            if stretch.last.offset == last:
                mine.finished = stretch.last
            else:
                (mine.finished,) = self.lane.digest.of_stretch(stretch, last, stretch.finished_to)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.incarnations.clear()
            return
        if op.kind is Kind.UNLOCK:
            self._unlocked(op)
            return
        if op.kind is Kind.COMMIT:
            for code in [
                code for code, each in self.incarnations.items() if _could_be_of(op, code, each)
            ]:
                if op.correction:
                    del self.incarnations[code]
                elif op.value != NONE:
                    self.incarnations[code].open[op.place] = op.value
            return
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            self.incarnations[op.incarnation] = Incarnation(op)
            return
        mine = self.incarnations.get(op.incarnation)
        if mine is None:
            return
        if op.kind is Kind.DROP:
            mine.dropped = True

    def _unlocked(self, op: Op) -> None:
        leaving = self.may_be_leaving(op.client)
        code = self._only_one(op, leaving) if op.incarnation == NO_TEXT else op.incarnation
        mine = None if code is None else self.incarnations.pop(code, None)
        if mine is not None and mine.finished is not None:
            self.stakes += 1
            if max([mine.committed, *mine.open.values()]) <= mine.finished.offset:
                self.found(
                    mine.add, mine.finished, op, name="released-while-leaving" if leaving else None
                )

    def _only_one(self, op: Op, leaving: bool) -> int | None:
        """The incarnation that an unlock without a name must mean: none where there are two to choose from."""
        living = [
            code
            for code, each in self.incarnations.items()
            if each.add.client == op.client and not self.is_of_an_old_life(op.client, each.add)
        ]
        if len(living) > 1:
            for code in living:
                del self.incarnations[code]
        elif living and (leaving or self.incarnations[living[0]].dropped):
            return living[0]
        return None

    def ends(self, op: Op) -> None:
        if op.kind is Kind.COMMIT:
            for known in self.incarnations.values():
                value = known.open.pop(op.place, None)
                if value is not None and op.outcome is not Outcome.REFUSED:
                    known.committed = max(known.committed, value)
            return
        if op.kind is not Kind.DELIVER or op.offset == NONE or not certainly_acknowledges(op):
            return
        mine = self.incarnations.get(op.incarnation)
        if mine is None or mine.dropped:
            return
        if mine.finished is None or op.offset > mine.finished.offset:
            mine.finished = op


def _could_be_of(commit: Op, code: int, incarnation: Incarnation) -> bool:
    """A commit without a name may be of whatever its client has there."""
    return code == commit.incarnation or (
        commit.incarnation == NO_TEXT and commit.client == incarnation.add.client
    )


_KINDS = (Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.COMMIT, Kind.UNLOCK, Kind.RESET)
TWIN = Twin("CMT-13", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def released_without_a_commit(trace: Trace) -> Changes:
    for rows in trace.works:
        unlock = next((row for row in rows if row.kind is Kind.UNLOCK), None)
        finished = planting.finished(rows)
        if (
            unlock is None
            or not finished
            or any(row.detail for row in rows if row.kind is Kind.COMMIT)
        ):
            continue
        last = max(finished, key=lambda row: row.queue_offset or 0)
        told = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and (row.value or 0) > (last.queue_offset or 0)
        ]
        if told and all(row.seq_begin < unlock.seq_begin for row in told):
            gone, about = [row.seq_begin for row in told], (last.seq_begin, unlock.seq_begin)
            yield partial(trace.without, gone, about)


DEFECTS = (
    Mutant(
        "released-without-a-commit",
        "CMT-13",
        "a lane is given back unreported",
        released_without_a_commit,
    ),
)
