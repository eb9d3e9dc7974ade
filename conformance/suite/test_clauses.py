"""One test per clause of the specification: it passes when the run upheld the clause.

A clause that was not claimed, not exercised or is allowed to be broken is skipped with its reason.
"""

from __future__ import annotations

from conformance.plugin import Suite


def test_clause(inorder_suite: Suite, clause_id: str) -> None:
    """The clause is upheld."""
    inorder_suite.report_clause(clause_id)


def test_run(inorder_suite: Suite, check_id: str) -> None:
    """The run can be trusted and was worth its while."""
    inorder_suite.report_check(check_id)
