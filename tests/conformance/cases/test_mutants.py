"""A case that names a mutant is failed by it, and each mutant is failed by a case that names it."""

from __future__ import annotations

import pytest

from conformance.cases.folder import all_cases
from conformance.cases.play import play
from conformance.cases.text import Case
from reference_impl.mutants import LEASED, every_mutant

PAIRS = [(case, name) for case in all_cases() for name in case.mutants]
MUTANTS = [mutant.name for mutant in every_mutant() if mutant.oracle != LEASED]
"""Those of the cluster: a case plays one, and no queue whose messages are leased one by one, or group with epochs."""


@pytest.mark.parametrize(
    ("case", "name"), PAIRS, ids=[f"{case.name}-{name}" for case, name in PAIRS]
)
def test_the_mutant_answers_differently(case: Case, name: str) -> None:
    """With the mutant's classes at least one answer is another one."""
    assert play(case, name).differences != ()


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_named(name: str) -> None:
    """Whoever adds a mutant adds a case that it fails, or adds its name to one."""
    assert name in {named for _, named in PAIRS}
