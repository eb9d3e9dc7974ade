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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, GENERATIONS
from specs.clauses.rows import ended_before
from specs.clauses.words import at, ms, who
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
ANSWERS = frozenset({Outcome.OK, Outcome.REFUSED})


@dataclass(frozen=True, slots=True)
class FormerOneTaken(Finding):
    """others: the commit that shows that the lane is another's. add: None where the generations show it."""

    add: Row | None
    others: Row
    commit: Row


class LaneJudge(Judge):
    """adds: of the incarnations that were not told that the lane is gone. others: the first commit of another client
    that was accepted since. newest: of each client the accepted commit of the highest generation. late: commits that
    have to be refused, by their begin."""

    __slots__ = ("adds", "late", "newest", "others")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.adds: dict[str, Row] = {}
        self.others: dict[str, Row] = {}
        self.newest: dict[str, Row] = {}
        self.late: dict[int, tuple[Row | None, Row]] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if name is None or row.client_id is None:
            return NOTHING
        if row.kind is Kind.ADD:
            for other in [
                each for each, add in self.adds.items() if add.client_id == row.client_id
            ]:
                self._forget(other)
            self.adds[name] = row
        elif row.kind is Kind.DROP:
            self._forget(name)
        elif (newer := self._newer(row)) is not None:
            self.late[row.seq_begin] = (None, newer)
        elif name in self.others and not _is_told_apart(self.others[name], row):
            self.late[row.seq_begin] = (self.adds[name], self.others[name])
        return NOTHING

    def _newer(self, commit: Row) -> Row | None:
        """The accepted commit of another client that names the highest generation, if that is a later one."""
        others = (row for client, row in self.newest.items() if client != commit.client_id)
        newest = max(others, key=lambda row: row.generation or 0, default=None)
        if newest is None or commit.generation is None:
            return None
        return newest if (newest.generation or 0) > commit.generation else None

    def _forget(self, incarnation: str) -> None:
        self.adds.pop(incarnation, None)
        self.others.pop(incarnation, None)

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.COMMIT or row.incarnation is None or row.client_id is None:
            return NOTHING
        pair = self.late.pop(row.seq_begin, None)
        if pair is not None:
            return self._judged(*pair, row)
        if row.outcome is Outcome.OK:
            known = self.newest.get(row.client_id)
            if row.generation is not None and (
                known is None or row.generation > (known.generation or 0)
            ):
                self.newest[row.client_id] = row
            for name, add in self.adds.items():
                if add.client_id != row.client_id and ended_before(add, row):
                    self.others.setdefault(name, row)
        return NOTHING

    def _judged(self, add: Row | None, others: Row, commit: Row) -> Iterable[Finding]:
        since = others if add is None else add
        if commit.outcome not in ANSWERS or self.context.broker_died_since(commit.broker, since):
            return NOTHING
        self.opportunities += 1
        return (FormerOneTaken(add, others, commit),) if commit.outcome is Outcome.OK else NOTHING


def _is_told_apart(others: Row, commit: Row) -> bool:
    """Do both name their generation? Then the numbers say which one is former."""
    return others.generation is not None and commit.generation is not None


judge = LaneJudge


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
