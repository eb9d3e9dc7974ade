"""A line of the table: what all seeds of a scenario and a bug came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from inorder.evidence import grid
from inorder.evidence.scenario_matrix.simulated import BESIDE, CORRECT, SHOWN, SYNC
from reference_impl.mutants import load as load_mutant
from specs.verdicts.verdict import RunVerdict

SOCKETS = "sockets"
WAYS = (SHOWN, CORRECT, SYNC, BESIDE, SOCKETS)
HEAD = (
    "scenario",
    "bug",
    "clause",
    "refuted",
    "correct upheld",
    "after the sync",
    "silent without effect",
    "refuted on sockets",
)
LEFT_OUT = "–"
WITHOUT_EFFECT_MOST = 5
"""A bug may show in one of so many runs without effect: some chance is no need."""
AS_IT_MUST, OF = "as it must be", "of"
Row = tuple[str, ...]


def clause_of(bug: str) -> str:
    """What must refute it."""
    return load_mutant(bug).killed_by if bug else ""


@dataclass(frozen=True, slots=True)
class Line:
    """Of how many runs, in how many was it as it must be?

    bug: empty for a scenario that names none. counts: by way (`WAYS`). left_out: why sockets can't have it.
    """

    scenario: str
    bug: str
    counts: Mapping[str, tuple[int, int]]
    left_out: str = ""

    @classmethod
    def of(cls, scenario: str, bug: str, kept: Sequence[grid.Done]) -> Self:
        """From the cells that were made."""
        clause = clause_of(bug)
        told: dict[str, list[bool]] = {way: [] for way in WAYS}
        for done in kept:
            key, refuted = done.cell.key, done.value["refuted"]
            if key["scenario"] != scenario:
                continue
            if key["bug"] == CORRECT:
                told[SYNC if key[SYNC] else CORRECT].append(done.value["word"] == RunVerdict.UPHELD)
            elif key["bug"] == bug and done.cell.grid == SOCKETS:
                told[SOCKETS].append(clause in refuted)
            elif key["bug"] == bug:
                told[BESIDE if key[BESIDE] else SHOWN].append((clause in refuted) != key[BESIDE])
        return cls(scenario, bug, {way: (sum(each), len(each)) for way, each in told.items()})

    @property
    def place(self) -> tuple[str, str]:
        """What a later line of the same takes over."""
        return self.scenario, self.bug

    @property
    def is_wrong(self) -> bool:
        """A bug that was not shown, a correct cluster that was not upheld, a bug that needs no fault."""
        beside, of = self.counts[BESIDE]
        exact = all(
            right == total
            for right, total in (self.counts[way] for way in (SHOWN, CORRECT, SYNC, SOCKETS))
        )
        return not exact or (of - beside) * WITHOUT_EFFECT_MOST > of

    @property
    def row(self) -> Row:
        """Its cells in the table; a dash where sockets can't have it."""
        told = [f"{right} of {of}" if of else "" for right, of in self.counts.values()]
        if self.left_out and not told[-1]:
            told[-1] = LEFT_OUT
        return (self.scenario, self.bug, clause_of(self.bug), *told)

    def after(self, before: Line | None) -> Line:
        """With the ways that were not tried now as they were before."""
        if before is None:
            return self
        counts = {
            way: self.counts[way] if self.counts[way][1] else before.counts[way] for way in WAYS
        }
        tried_now = self.counts[SOCKETS][1] or self.left_out
        why = self.left_out if tried_now else before.left_out
        return replace(self, counts=counts, left_out=why)

    def to_json(self) -> dict[str, Any]:
        """As data."""
        named = {way: {AS_IT_MUST: right, OF: of} for way, (right, of) in self.counts.items()}
        place = {"scenario": self.scenario, "bug": self.bug, "clause": clause_of(self.bug)}
        return {**place, **named, "left_out": self.left_out}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From `to_json`."""
        counts = {way: (data[way][AS_IT_MUST], data[way][OF]) for way in WAYS}
        return cls(data["scenario"], data["bug"], counts, data["left_out"])
