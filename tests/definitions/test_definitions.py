"""Each clause's judge says of every small history what the clause's statement says, written down a second time."""

from __future__ import annotations

import re

import pytest

from specs.history.text import parse_history
from tests.definitions.alphabets import ALPHABETS, MOST_SYMBOLS
from tests.definitions.enumeration import (
    PAGES,
    SIZES,
    Count,
    compare,
    definition,
    excuses,
    named_on_page,
    needs,
    stakes,
)
from tests.definitions.wrong import rules_of

CLAUSES = sorted(ALPHABETS)


def _differences(count: Count) -> str:
    return "\n\n".join(f"{how}:\n{history}" for how, history in count.shortest.items())


def _check(clause: str, size: str) -> None:
    count = compare(clause, SIZES[size])
    assert not count.differences, _differences(count)
    assert min(count.at_stake, count.refuted) > 0, f"too poor an alphabet: {count}"
    assert count.excused or not excuses(clause), f"nothing is excused: {count}"
    overlooked = {rule.__name__ for rule in rules_of(clause)} - count.noticed
    assert not overlooked, f"no history tells a wrong judge from the definition: {overlooked}"
    assert count.stakes == stakes()[clause, size]


@pytest.mark.parametrize("clause", CLAUSES)
def test_short_histories_are_judged_as_defined(clause: str) -> None:
    """Every history of up to two symbols, and many near what breaks the definition; and wrong judges are noticed.

    Nobody is accused for certain in a part of them. The clause is at stake, and finds what it finds, as often as when
    somebody looked (`stakes.txt`).
    """
    _check(clause, "short")


@pytest.mark.long
@pytest.mark.parametrize("clause", CLAUSES)
def test_histories_are_judged_as_defined(clause: str) -> None:
    """Every history of up to four symbols, and thousands of longer ones."""
    _check(clause, "long")


def _example(clause: str, heading: str) -> str:
    page = (PAGES / f"{clause}.md").read_text(encoding="utf-8")
    found = re.search(rf"## {heading}.*?```\n(.*?)```", page, re.DOTALL)
    assert found, f"the page of {clause} has no example under {heading!r}"
    return found[1]


@pytest.mark.parametrize("clause", CLAUSES)
def test_the_pages_violation_is_broken(clause: str) -> None:
    """The shortest violation of the clause's page breaks its definition."""
    info, rows = parse_history(_example(clause, "The shortest violation"))
    assert definition(clause).broken(rows, info.config)


@pytest.mark.parametrize("clause", CLAUSES)
def test_the_pages_lookalike_is_kept(clause: str) -> None:
    """The lookalike of the clause's page does not break its definition."""
    info, rows = parse_history(_example(clause, "A lookalike"))
    assert not definition(clause).broken(rows, info.config)


@pytest.mark.parametrize("clause", CLAUSES)
def test_alphabets_follow_their_rule(clause: str) -> None:
    """What the clause needs is in both alphabets, what could excuse in one of them."""
    kinds = [
        {row.kind for symbol in alphabet.symbols for row in symbol.rows}
        for alphabet in ALPHABETS[clause]
    ]
    assert needs(clause) <= kinds[0] & kinds[1]
    assert named_on_page(clause, "Could be excused by rows of") <= kinds[0] | kinds[1]
    assert max(len(alphabet.symbols) for alphabet in ALPHABETS[clause]) <= MOST_SYMBOLS
