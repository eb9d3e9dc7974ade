"""What came of the changes, for people: who noticed how many, and what nobody noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from inorder.evidence.operators.edits import Change
from inorder.evidence.operators.equivalent import why_equivalent
from inorder.evidence.operators.pools import concerned
from inorder.evidence.operators.questions import defined
from inorder.evidence.operators.trial import DEFINITIONS, TRANSCRIPTS, WAYS
from inorder.evidence.tables import markdown

NOTICED, ALONE = 0.95, 0.90
"""Of the changes that count so many are noticed at all; and by definitions alone, in clauses that have one."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a change: by way, what noticed it, or ""."""

    change: Change
    noticed: dict[str, str]

    @property
    def counts(self) -> bool:
        """Could anybody notice it?"""
        return any(self.noticed.values()) or why_equivalent(self.change) is None

    @property
    def is_defined(self) -> bool:
        """Do only clauses that have a definition rest on it?"""
        return set(concerned(self.change.module)) <= defined()

    @property
    def survives(self) -> bool:
        return self.counts and not any(self.noticed.values())


def rate(fates: Sequence[Fate], *ways: str) -> float:
    """The share of those that count that one of these ways notices."""
    counted = [fate for fate in fates if fate.counts]
    found = sum(any(fate.noticed[way] for way in ways) for fate in counted)
    return found / len(counted) if counted else 1.0


def falls_short(fates: Sequence[Fate]) -> bool:
    """Is too little noticed?"""
    of_defined = [fate for fate in fates if fate.is_defined]
    return rate(fates, *WAYS) < NOTICED or rate(of_defined, DEFINITIONS) < ALONE


HEAD = ("changed", "changes", "equivalent", TRANSCRIPTS, DEFINITIONS, "laws besides", "anybody")


def summary(fates: Sequence[Fate]) -> list[list[str]]:
    """A row for all, one for what only clauses with a definition rest on, and one for the others."""
    rows = []
    of = {
        "all": fates,
        "in clauses with a definition": [fate for fate in fates if fate.is_defined],
        "elsewhere": [fate for fate in fates if not fate.is_defined],
    }
    for name, some in of.items():
        shares = [f"{100 * rate(some, *ways):.0f} %" for ways in (*((way,) for way in WAYS), WAYS)]
        equivalent = sum(not fate.counts for fate in some)
        rows.append([name, str(len(some)), str(equivalent), *shares])
    return rows


def unnoticed(fates: Sequence[Fate]) -> list[str]:
    """A line for each change that counts and that nobody noticed, and for each that is equivalent, with its reason."""
    lines = [f"survives: {fate.change}" for fate in fates if fate.survives]
    equivalent = [fate.change for fate in fates if not fate.counts]
    return lines + [f"equivalent: {each}: {why_equivalent(each)}" for each in equivalent]


def kinds(fates: Sequence[Fate]) -> list[list[str]]:
    """By operator: changes that count, and those that nobody noticed."""
    counted = [fate for fate in fates if fate.counts]
    total = Counter(fate.change.operator for fate in counted)
    silent = Counter(fate.change.operator for fate in counted if fate.survives)
    return [[name, str(total[name]), str(silent[name])] for name in sorted(total)]


def page(fates: Sequence[Fate]) -> str:
    """The tables in Markdown."""
    lines = markdown(HEAD, summary(fates), right=HEAD[1:])
    head = ("operator", "changes", "noticed by nobody")
    lines += ["", *markdown(head, kinds(fates), right=head[1:]), ""]
    return "\n".join([*lines, *(f"- {line}" for line in unnoticed(fates)), ""])
