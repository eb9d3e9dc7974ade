"""A case that names a mutant is failed by it; every mutant is failed by a case of its own."""

from __future__ import annotations

import pytest

from conformance.cases.folder import all_cases
from conformance.cases.play import play
from conformance.cases.text import Case

PAIRS = [(case, name) for case in all_cases() for name in case.mutants]


@pytest.mark.parametrize(("case", "name"), PAIRS, ids=[f"{case.name}-{name}" for case, name in PAIRS])
def test_the_mutant_answers_differently(case: Case, name: str) -> None:
    """With the mutant's classes at least one answer is another one."""
    assert play(case, name).differences != ()
