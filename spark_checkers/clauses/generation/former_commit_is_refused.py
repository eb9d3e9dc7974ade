"""GEN-1 over columns: adds, drops and commits are few, so a machine per lane goes through them."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeGuard

from spark_checkers.planting import GENERATIONS, STRANGER, Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, ended_before, machine_kernel
from specs.facts.segments import NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


class Work:
    """An incarnation that was not told that its lane is gone: its add, and another's commit since."""

    __slots__ = ("add", "others")

    def __init__(self, add: Op) -> None:
        self.add = add
        self.others: Op | None = None


class Lane(Machine):
    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.works: dict[int, Work] = {}
        self.late: dict[int, tuple[Op | None, Op]] = {}
        self.newest: dict[int, Op] = {}  # by client: its accepted commit of the highest generation
        self.generations = lane.digest.rows.number("generation")

    def begins(self, op: Op) -> None:
        if op.incarnation == NO_TEXT or op.client == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            self.works = {n: w for n, w in self.works.items() if w.add.client != op.client}
            self.works[op.incarnation] = Work(op)
        elif op.kind is Kind.DROP:
            self.works.pop(op.incarnation, None)
        else:
            mine, newer = self.works.get(op.incarnation), self._newer(op)
            if newer is not None:
                self.late[op.place] = None, newer
            elif mine is not None and self._shows(mine.others, op):
                self.late[op.place] = mine.add, mine.others

    def _shows(self, others: Op | None, op: Op) -> TypeGuard[Op]:
        """Does another's commit show that this one is former? Not where both name their generation."""
        return others is not None and NONE in (self._generation(others), self._generation(op))

    def _generation(self, op: Op) -> int:
        return int(self.generations[op.place])

    def _newer(self, op: Op) -> Op | None:
        """Another client's accepted commit of the highest generation, if that is above the commit's own."""
        others = [each for client, each in self.newest.items() if client != op.client]
        newest = max(others, key=self._generation, default=None)
        mine = self._generation(op)
        if newest is None or mine == NONE or self._generation(newest) <= mine:
            return None
        return newest

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.COMMIT or op.incarnation == NO_TEXT or op.client == NO_TEXT:
            return
        if op.place in self.late:
            add, others = self.late.pop(op.place)
            answered = op.outcome in (Outcome.OK, Outcome.REFUSED)
            if answered and not self.broker_died_since(others if add is None else add):
                self.stakes += 1
                if op.outcome is Outcome.OK:
                    self.found(add, others, op)
        elif op.outcome is Outcome.OK:
            known, mine = self.newest.get(op.client), self._generation(op)
            if mine != NONE and (known is None or mine > self._generation(known)):
                self.newest[op.client] = op
            for work in self.works.values():
                foreign = work.add.client != op.client and ended_before(work.add, op)
                if foreign and work.others is None:
                    work.others = op


TWIN = Twin(
    "GEN-1",
    (*OP_COLUMNS, "generation"),
    machine_kernel(Lane, (Kind.ADD, Kind.DROP, Kind.COMMIT), lease=False),
)
find = TWIN.find


# ---- what breaks the clause, planted


def _between(trace: Trace, commit: Row, outcome: Outcome) -> Planted:
    """A stranger's commit right after one, and then the first one's once more, with that outcome."""
    stranger: dict[str, Any] = {
        "client_id": STRANGER,
        "process": STRANGER,
        "incarnation": f"{STRANGER}#1",
    }
    others = trace.another(commit, commit, 1, outcome=Outcome.OK, **stranger)
    return trace.with_more([others, trace.another(commit, commit, 2, outcome=outcome)])


def _last_commits(trace: Trace) -> list[Row]:
    """The last commit of each incarnation that was seen to begin, where it had the lane still."""
    found = []
    for rows in trace.works:
        commits = [row for row in rows if row.kind is Kind.COMMIT and row.value is not None]
        drop = next((row.seq_begin for row in rows if row.kind is Kind.DROP), None)
        if not commits or rows[0].kind is not Kind.ADD:
            continue
        ended = commits[-1].seq_end
        if ended is not None and (drop is None or ended < drop):
            found.append(commits[-1])
    return found


def former_one_taken(trace: Trace) -> Changes:
    for commit in _last_commits(trace):
        yield partial(_between, trace, commit, Outcome.OK)


def former_one_refused(trace: Trace) -> Changes:
    for commit in _last_commits(trace):
        yield partial(_between, trace, commit, Outcome.REFUSED)


DEFECTS = (
    Mutant(
        "former-generation-taken",
        "GEN-1",
        "who had a lane before commits once more after another's commit, and it is accepted",
        former_one_taken,
        config=GENERATIONS,
    ),
)

LOOKALIKES = (
    Mutant(
        "former-generation-refused",
        None,
        "who had a lane before commits once more after another's commit, and it is refused",
        former_one_refused,
        config=GENERATIONS,
    ),
)
