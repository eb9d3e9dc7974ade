"""What a pass over a history found, clause by clause, before any profile says what counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from specs.history.row import Row


@dataclass(slots=True)
class Tally:
    """One clause: how often it was at stake, how often broken, and the first violation.

    witness: the smallest evidence, by seq_begin. place orders witnesses of merged tallies.
    """

    opportunities: int = 0
    violations: int = 0
    possible: int = 0
    witness: tuple[Row, ...] = ()
    explanation: str = ""
    witness_certain: bool = False

    def merge(self, other: Tally) -> None:
        """Add another run's tally; a certain witness is kept before a possible one, the first before later ones."""
        self.opportunities += other.opportunities
        self.violations += other.violations
        self.possible += other.possible
        better = other.witness_certain and not self.witness_certain
        if other.witness and (not self.witness or better):
            self.witness, self.explanation = other.witness, other.explanation
            self.witness_certain = other.witness_certain


@dataclass(frozen=True, slots=True)
class Check:
    """A check of the run itself (MET). ok: None when there was nothing to check."""

    id: str
    title: str
    ok: bool | None
    detail: str = ""


@dataclass(slots=True)
class RunFacts:
    """What the checks of the run need; both judges fill it."""

    rows: int = 0
    sends: int = 0
    deliveries: int = 0
    broken: list[str] = field(default_factory=list)  # why the history can't be trusted
    faults: list[tuple[str, bool]] = field(default_factory=list)  # (name, had an effect)
    subscriptions_differ: list[str] = field(default_factory=list)  # groups

    def merge(self, other: RunFacts) -> None:
        self.rows += other.rows
        self.sends += other.sends
        self.deliveries += other.deliveries
        self.broken.extend(other.broken)
        self.faults.extend(other.faults)
        self.subscriptions_differ.extend(other.subscriptions_differ)


@dataclass(slots=True)
class Examination:
    """The tallies of one or several histories."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    facts: RunFacts = field(default_factory=RunFacts)
    cut: list[str] = field(default_factory=list)

    def merge(self, other: Examination) -> None:
        for clause_id, tally in other.tallies.items():
            self.tallies.setdefault(clause_id, Tally()).merge(tally)
        self.facts.merge(other.facts)
        self.cut.extend(other.cut)

    def refuted(self) -> tuple[str, ...]:
        """Ids of clauses with a certain violation, in catalogue order."""
        return tuple(clause_id for clause_id, tally in self.tallies.items() if tally.violations)


def merged(examinations: Iterable[Examination]) -> Examination:
    total = Examination()
    for examination in examinations:
        total.merge(examination)
    return total


Tallies = Mapping[str, Tally]
Rows = Sequence[Row]
