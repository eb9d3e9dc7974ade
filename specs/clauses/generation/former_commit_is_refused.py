"""A member that was not heard while its lane was given to another can't commit on it any more: it is refused.

Each time at which a coordinator hands lanes out it begins a new generation (classic groups: of the group; KIP-848: an
epoch of each member), and a commit under a former one is refused. Which generation a commit was made under is known
without its number: as long as an incarnation was not told that its lane is gone (its DROP), its client is in that one
in which it was given the lane, or in one that left it the lane. A commit of another client, accepted after that
incarnation had begun, shows that the lane was given away since; so whatever the incarnation commits after that answer
has to be refused. Where both commits name their generation, the numbers say it instead, in both directions: a commit
under a lower one than another client's, which was accepted before, has to be refused, whatever its client was told; one
under the same, or a higher one, is none of a former generation.

That the other one was given the lane (its ADD) shows nothing: whoever stood still meanwhile may tell it late, when the
lane is the first one's again. Says nothing of requests that nobody answers, nor of commits that were under way when the
other's was answered. It is the broker's side of CMT-5, which asks the same of a client that gave the lane back itself;
here the client does not know. With the leases of RocketMQ no broker refuses a commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, GENERATIONS
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, each_lane, ended_before
from specs.facts.segments import NO_TEXT, NONE
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "GEN-1"
TITLE = "a former generation's commit is refused"
STATEMENT = (
    "Once a lane was given to another member, who has committed on it, the broker refuses the commits of the one that "
    "had it before and was not told, and those that name a former generation."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (GENERATIONS, BROKER_LIVES)
SOURCES = ("docs/sources.md#kafka-generations",)
STAKES = (Stake(Trait.SLEEPER, brings=1),)
KINDS = frozenset({Kind.ADD, Kind.DROP, Kind.COMMIT})
NEEDS = frozenset({Kind.ADD, Kind.DROP, Kind.COMMIT})
TOLD_OF_REFUSED_COMMITS = True
COLUMNS = (*OP_COLUMNS, "generation")


@dataclass(frozen=True, slots=True)
class FormerOneTaken(Finding):
    """others: the commit that shows that the lane is another's. add: None where the generations show it."""

    add: Row | None
    others: Row
    commit: Row


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
                    self.broken(FormerOneTaken, add=add, others=others, commit=op)
        elif op.outcome is Outcome.OK:
            known, mine = self.newest.get(op.client), self._generation(op)
            if mine != NONE and (known is None or mine > self._generation(known)):
                self.newest[op.client] = op
            for work in self.works.values():
                foreign = work.add.client != op.client and ended_before(work.add, op)
                if foreign and work.others is None:
                    work.others = op


judge = each_lane(Lane, (Kind.ADD, Kind.DROP, Kind.COMMIT), lease=False)


def explain(found: FormerOneTaken) -> str:
    add, others, commit = found.add, found.others, found.commit
    said = (
        f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, and it was accepted, "
        f"{ms(commit.started_us - others.started_us)} after {who(others)} had committed {others.value}"
    )
    if add is None:
        return f"{said}, under generation {commit.generation} after {others.generation}"
    given = f"{commit.client_id} had been given the lane at {at(add)}"
    return f"{said}; {given}, and not been told since that it is another's"
