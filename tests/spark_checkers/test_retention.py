"""Both judges excuse the same removals."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import all_clauses
from specs.history.text import parse_history
from tests.spark_checkers.test_twins import all_twins, by_python, by_twins
from tests.specs.clauses.test_retention_more import EXAMPLES


@pytest.mark.parametrize(
    ("clause", "violations", "why", "text"), EXAMPLES, ids=[f"{e[0]}: {e[2]}" for e in EXAMPLES]
)
def test_the_twin_says_the_same(clause: str, violations: int, why: str, text: str) -> None:
    info, rows = parse_history(text)
    found = by_twins(rows, info, all_twins())
    assert found == by_python(rows, info, all_clauses())
    assert len(found[clause][1]) == violations
