"""What came of the changes, for people: who noticed how many, and what nobody noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from inorder.evidence.operators.edits import Change
from inorder.evidence.operators.equivalent import why_equivalent
from inorder.evidence.operators.pools import Side, is_common
from inorder.evidence.operators.similarity import Likeness
from inorder.evidence.operators.trial import COMPARISON, TRANSCRIPTS, WAYS
from inorder.evidence.tables import markdown

NOTICED, ALONE = 0.95, 0.80
"""Of the changes that count: so many are noticed at all, and by the comparison alone."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a change: by way, what noticed it, or ""."""

    side: Side
    change: Change
    noticed: dict[str, str]

    @property
    def counts(self) -> bool:
        """Could anybody notice it?"""
        return any(self.noticed.values()) or why_equivalent(self.change) is None

    @property
    def is_common(self) -> bool:
        """Was it in a text that both sides use?"""
        return self.side is Side.JUDGES and is_common(self.change.module, self.change.function)

    @property
    def survives(self) -> bool:
        return self.counts and not any(self.noticed.values())


def rate(fates: Sequence[Fate], *ways: str) -> float:
    """The share of those that count that one of these ways notices."""
    counted = [fate for fate in fates if fate.counts]
    found = sum(any(fate.noticed[way] for way in ways) for fate in counted)
    return found / len(counted) if counted else 1.0


def falls_short(fates: Sequence[Fate]) -> bool:
    """Is too little noticed on either side?"""
    of = [[fate for fate in fates if fate.side is side] for side in Side]
    return any(rate(each, *WAYS) < NOTICED or rate(each, COMPARISON) < ALONE for each in of)


HEAD = ("changed in", "changes", "equivalent", TRANSCRIPTS, COMPARISON, "laws besides", "anybody")


def summary(fates: Sequence[Fate]) -> list[list[str]]:
    """A row for each side; and one for what both use, which is the judges' and which no comparison can see."""
    rows = []
    every = {side.value: [fate for fate in fates if fate.side is side] for side in Side}
    common = [fate for fate in every[Side.JUDGES] if fate.is_common]
    of_both = {"judges: what kernels use too": common} if common else {}
    for name, of in {**every, **of_both}.items():
        shares = [f"{100 * rate(of, *ways):.0f} %" for ways in (*((way,) for way in WAYS), WAYS)]
        equivalent = sum(not fate.counts for fate in of)
        rows.append([name, str(len(of)), str(equivalent), *shares])
    return rows


def unnoticed(fates: Sequence[Fate]) -> list[str]:
    """A line for each change that counts and that nobody noticed, and for each that is equivalent, with its reason."""
    lines = [f"survives: {fate.change}" for fate in fates if fate.survives]
    equivalent = [fate.change for fate in fates if not fate.counts]
    return lines + [f"equivalent: {each}: {why_equivalent(each)}" for each in equivalent]


def kinds(fates: Sequence[Fate]) -> list[list[str]]:
    """By operator: changes that count, and those that nobody, and that the comparison did not notice."""
    total: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    apart: Counter[str] = Counter()
    for fate in (each for each in fates if each.counts):
        total[fate.change.operator] += 1
        silent[fate.change.operator] += fate.survives
        apart[fate.change.operator] += not fate.noticed[COMPARISON]
    return [[name, str(total[name]), str(apart[name]), str(silent[name])] for name in sorted(total)]


SIMILARITY = ("clause", "tokens", "in common", "with others", "at most", "ratio", "")


def similarity(found: Sequence[Likeness]) -> list[list[str]]:
    """A row for each clause, the most alike first."""
    return [
        [
            each.clause,
            f"{each.tokens[0]} / {each.tokens[1]}",
            *(f"{100 * share:.0f} %" for share in (each.shared, each.others, each.highest)),
            f"{each.ratio:.2f}",
            "looks typed" if each.looks_typed else "",
        ]
        for each in sorted(found, key=lambda each: -each.shared)
    ]


def page(fates: Sequence[Fate], found: Sequence[Likeness]) -> str:
    """The tables in Markdown."""
    numbers = HEAD[1:]
    lines = markdown(HEAD, summary(fates), right=numbers)
    head = ("operator", "changes", "not by the comparison", "by nobody")
    lines += ["", *markdown(head, kinds(fates), right=head[1:]), ""]
    lines += [f"- {line}" for line in unnoticed(fates)]
    return "\n".join(
        [*lines, "", *markdown(SIMILARITY, similarity(found), right=SIMILARITY[1:6]), ""]
    )
