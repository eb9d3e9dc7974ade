"""Within an incarnation, a commit that begins after another has ended does not carry a smaller value.

Commits that overlap in time may arrive in any order and are not compared. Nor is a commit that travels with a pull
compared with one-way commits that were sent less than the slack of a timer before: the pull took its value from the
client's memory before the timer reported a newer one, and is sent after it. A broker's correction (of the value that a
pull was told to go on at) and a new look-up of the stored offset (which the client adopts even when it is lower) clear
what is remembered, and what is under way then; a look-up that names no incarnation is one of each incarnation of its
client. After a reset an incarnation is judged once it was added since: before, a client that was told of it may report
the old offset once more, and then the new one. A commit that was refused is none. Says nothing about another
incarnation: it may well start lower. Nor about what the next process of a client's name commits, where it left or died
and no ADD tells that the incarnation is a new one.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_RESET
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, each_lane, ends_as
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-4"
TITLE = "commits never go back"
STATEMENT = (
    "Within an incarnation, commits that do not overlap in time never go back, without a reset."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (NO_RESET,)
SOURCES = ("docs/sources.md#offsets",)
KINDS = frozenset({Kind.COMMIT, Kind.ADD, Kind.RESET, Kind.FETCH_OFFSET, Kind.PULL})
NEEDS = frozenset({Kind.COMMIT})
COLUMNS = (*OP_COLUMNS, "view")


@dataclass(frozen=True, slots=True)
class CommitWentBack(Finding):
    first: Row
    second: Row


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
                self.broken(CommitWentBack, first=best, second=op)

    def _with_a_pull(self, op: Op) -> bool:
        """Did a pull carry the commit along? Then its value may be older than the commit."""
        return self.lane.digest.rows.name_of("view", op.place) == "pull"

    def _forget(self, incarnation: int) -> None:
        for place in [each for each, op in self.under_way.items() if op.incarnation == incarnation]:
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


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: CommitWentBack) -> str:
    first, second = found.first, found.second
    return (
        f"{who(second)} committed {second.value} for {second.lane} at {at(second)}, after it had committed "
        f"{first.value} at {at(first)} in the same incarnation"
    )
