"""What a pass over a history found, clause by clause, before any profile says what counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from specs.history.row import Row


@dataclass(slots=True)
class Found:
    """What was found of one kind: how often, and the first of it.

    witness: the smallest evidence, by seq_begin. certain: is the witness a violation for certain?
    """

    violations: int = 0
    possible: int = 0
    witness: tuple[Row, ...] = ()
    explanation: str = ""
    certain: bool = False

    def merge(self, other: Found) -> None:
        """Add another's; a certain witness is kept before a possible one, the first before later ones."""
        self.violations += other.violations
        self.possible += other.possible
        if other.witness and (not self.witness or (other.certain and not self.certain)):
            self.witness, self.explanation, self.certain = (
                other.witness,
                other.explanation,
                other.certain,
            )


@dataclass(slots=True)
class Tally:
    """One clause: how often it was at stake, and what was found, by the public names of findings.

    missing: the kinds of rows that it needs and that the history does not record; then it was not judged. assumed: the
    kinds of rows that could have excused a finding and of which the history does not say whether it would tell.
    """

    opportunities: int = 0
    found: dict[str, Found] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    def names(self, without: Iterable[str] = ()) -> tuple[str, ...]:
        """The public names of what was found, but for these; first that of which `total` has the witness."""
        left_out = set(without)
        return tuple(
            sorted(self.found.keys() - left_out, key=lambda name: (*_rank(self.found[name]), name))
        )

    def total(self, without: Iterable[str] = ()) -> Found:
        """All that was found, but for findings of these names."""
        left_out = set(without)
        first = _in_order(found for name, found in self.found.items() if name not in left_out)
        return _sum(first)

    @property
    def violations(self) -> int:
        return sum(found.violations for found in self.found.values())

    @property
    def possible(self) -> int:
        return sum(found.possible for found in self.found.values())

    @property
    def witness(self) -> tuple[Row, ...]:
        return self.total().witness

    @property
    def explanation(self) -> str:
        return self.total().explanation

    def merge(self, other: Tally) -> None:
        """Add another run's tally. A clause that one of the runs could judge was judged."""
        both = bool(self.missing and other.missing)
        self.missing = tuple(sorted({*self.missing, *other.missing})) if both else ()
        self.assumed = tuple(sorted({*self.assumed, *other.assumed}))
        self.opportunities += other.opportunities
        for name, found in other.found.items():
            self.found.setdefault(name, Found()).merge(found)


def _in_order(found: Iterable[Found]) -> list[Found]:
    """By their witnesses: certain ones first, then as they happened."""
    return sorted(found, key=_rank)


def _rank(found: Found) -> tuple[bool, list[tuple[str, int]]]:
    return (not found.certain, [(row.run, row.seq_begin) for row in found.witness[-1:]])


def _sum(found: Iterable[Found]) -> Found:
    total = Found()
    for each in found:
        total.merge(each)
    return total


@dataclass(frozen=True, slots=True)
class Check:
    """A check of the run itself (MET). ok: None when there was nothing to check."""

    id: str
    title: str
    ok: bool | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class FaultTold:
    """A fault of a run that was broken on purpose: when it was, and what shows that it had an effect.

    Times are in ms since the run's first row; to_ms: None where it lasted to the end. evidence: empty where nothing
    shows an effect. recovered_ms: after its end, until the slowest lane that had something to do went on; None where a
    lane never did. lanes: how many had something to do then.
    """

    name: str
    effective: bool
    from_ms: int
    to_ms: int | None
    evidence: str
    lanes: int = 0
    recovered_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        told = asdict(self)
        return {"fault": told.pop("name"), **told}


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
    """The tallies of one or several histories. clock_stepped: somebody who looked saw a step of a wall clock."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    facts: RunFacts = field(default_factory=RunFacts)
    cut: list[str] = field(default_factory=list)
    clock_stepped: bool = field(default=False, compare=False)

    def merge(self, other: Examination) -> None:
        for clause_id, tally in other.tallies.items():
            # A clause that nobody has judged yet is still one that lacks what it needs.
            self.tallies.setdefault(clause_id, Tally(missing=tally.missing)).merge(tally)
        self.facts.merge(other.facts)
        self.cut.extend(other.cut)
        self.clock_stepped = self.clock_stepped or other.clock_stepped

    def refuted(self) -> tuple[str, ...]:
        """Ids of clauses with a certain violation, in catalogue order."""
        return tuple(clause_id for clause_id, tally in self.tallies.items() if tally.violations)


def merged(examinations: Iterable[Examination]) -> Examination:
    total = Examination()
    for examination in examinations:
        total.merge(examination)
    return total
