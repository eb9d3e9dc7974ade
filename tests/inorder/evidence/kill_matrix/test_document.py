"""`docs/mutants.md` lists every mutant and every known bug."""

from __future__ import annotations

from inorder.evidence.kill_matrix.bugs import all_bugs, mutants_of
from inorder.evidence.kill_matrix.document import DOCUMENT, with_tables
from specs.clauses.catalogue import catalogue


def test_the_page_is_fresh() -> None:
    """Otherwise run `python -m inorder.evidence.kill_matrix.document`."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert with_tables(text) == text


def test_no_bug_waits_for_a_clause_that_exists() -> None:
    there = {promise.id for promise in catalogue()}
    assert [bug.id for bug in all_bugs() if there.intersection(bug.waits_for)] == []


def test_every_known_bug_has_a_mutant_or_a_reason_for_none() -> None:
    """And the numbers run from 1 on without a hole."""
    known = mutants_of()
    bugs = all_bugs()
    assert [bug.number for bug in bugs] == list(range(1, len(bugs) + 1))
    assert [bug.id for bug in bugs if not (known[bug.id] or bug.why_not or bug.waits_for)] == []
