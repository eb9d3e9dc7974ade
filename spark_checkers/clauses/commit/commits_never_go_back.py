"""CMT-4 over columns: whatever happens to calls, only commits and what clears them are looked at."""

from __future__ import annotations

import itertools
from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import acknowledges
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, ends_as, machine_kernel
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """For each incarnation, the highest commit that has ended; apart from it one-way ones, as long as they are new."""

    ENDS = ends_as([Kind.FETCH_OFFSET, Kind.COMMIT])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.highest: dict[int, Op] = {}
        self.recent: dict[int, list[Op]] = {}
        self.client: dict[int, int] = {}  # by incarnation: of the first commit that is remembered
        self.under_way: dict[int, Op] = {}  # commits, since nothing cleared their incarnation
        self.new: set[int] | None = None  # incarnations since the last reset, where there was one
        self.slack_us = self.config.schedule_slack_ms * MS

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.highest.clear()
            self.recent.clear()
            self.client.clear()
            self.under_way.clear()
            self.new = set()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD or op.correction:
            self._forget(op.incarnation)
            if op.kind is Kind.ADD and self.new is not None:
                self.new.add(op.incarnation)
        elif op.kind is Kind.COMMIT and op.value != NONE:
            self._committed(op)

    def _committed(self, op: Op) -> None:
        if op.end < NEVER:
            self.under_way[op.place] = op
        new: list[Op] = []
        for each in self.recent.pop(op.incarnation, []):
            if each.started + self.slack_us <= op.started:
                self._ended(each)
            else:
                new.append(each)
        if new:
            self.recent[op.incarnation] = new
        best = self.highest.get(op.incarnation)
        best = best if best is not None and self._lives(best) else None
        if not self._with_a_pull(op):
            for each in new:
                if self._lives(each) and (best is None or each.value > best.value):
                    best = each
        if best is not None:
            self.stakes += 1
            if op.value < best.value:
                self.found(best, op)

    def _with_a_pull(self, op: Op) -> bool:
        """Did a pull carry the commit along? Then its value may be older than the commit."""
        return self.lane.digest.rows.name_of("view", op.place) == "pull"

    def _forget(self, incarnation: int) -> None:
        for place in [at for at, op in self.under_way.items() if op.incarnation == incarnation]:
            del self.under_way[place]
        self.highest.pop(incarnation, None)
        self.recent.pop(incarnation, None)
        self.client.pop(incarnation, None)

    def _lives(self, op: Op) -> bool:
        """Is whoever committed this the one that commits under its name now?"""
        return not self.is_of_an_old_life(op.client, op)

    def _ended(self, op: Op) -> None:
        highest = self.highest.get(op.incarnation)
        replaces = highest is None or op.value > highest.value or not self._lives(highest)
        if replaces and self._lives(op):
            self.highest[op.incarnation] = op

    def ends(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            if op.kind is Kind.FETCH_OFFSET:  # whichever of its client's it was
                of_client = {
                    each.incarnation for each in self.under_way.values() if each.client == op.client
                }
                of_client.update(each for each, of in self.client.items() if of == op.client)
                for mine in of_client:
                    self._forget(mine)
        elif op.kind is Kind.FETCH_OFFSET:
            self._forget(op.incarnation)
        elif (
            op.kind is Kind.COMMIT
            and self.under_way.pop(op.place, None) is not None
            and (self.new is None or op.incarnation in self.new)
        ):
            self.client.setdefault(op.incarnation, op.client)
            if op.outcome is Outcome.SENT:
                self.recent.setdefault(op.incarnation, []).append(op)
            else:
                self._ended(op)


_KINDS = (Kind.COMMIT, Kind.ADD, Kind.RESET, Kind.FETCH_OFFSET)
TWIN = Twin("CMT-4", (*OP_COLUMNS, "view"), machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def commit_rewinds(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        ends = {
            (row.queue_offset or 0) + 1
            for row in rows
            if row.kind is Kind.DELIVER and acknowledges(row)
        }
        commits = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.value is not None and row.detail is None
        ]
        for before, row in itertools.pairwise(commits):
            lower = max((end for end in ends if end < (before.value or 0)), default=None)
            apart = before.seq_end is not None and before.seq_end < row.seq_begin
            if apart and lower is not None and lower > (add.value or 0):
                change = {row.seq_begin: {"value": lower}}
                about = (before.seq_begin, row.seq_begin)
                yield partial(trace.changed, change, about)


def overlapping_commits(trace: Trace) -> Changes:
    for rows in trace.works:
        commits = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.value is not None and row.detail is None
        ]
        for before, row in itertools.pairwise(commits):
            apart = before.seq_end is not None and before.seq_end < row.seq_begin
            longer = row.seq_end is not None and row.seq_end > row.seq_begin
            if apart and longer and (before.value or 0) < (row.value or 0):
                yield partial(
                    lambda b, r: trace.with_more(
                        [trace.another(r, r, 1, at_end=False, value=b.value)], [r.seq_begin]
                    ),
                    before,
                    row,
                )


def corrected_commit(trace: Trace) -> Changes:
    for rows in trace.works:
        commits = [row for row in rows if row.kind is Kind.COMMIT and row.value]
        for row in commits[1:-1]:
            change = {row.seq_begin: {"value": (row.value or 0) - 1, "detail": "corrected"}}
            yield partial(trace.changed, change)


DEFECTS = (Mutant("commit-rewinds", "CMT-4", "a commit goes back", commit_rewinds),)

LOOKALIKES = (
    Mutant(
        "overlapping-commits", None, "a lower commit overlaps a higher one", overlapping_commits
    ),
    Mutant("corrected-commit", None, "a broker's correction moves a commit back", corrected_commit),
)
