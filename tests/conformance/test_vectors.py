"""The reference gives what the tables of vectors say, and a mutant of a tabulated function does not."""

from __future__ import annotations

import pytest

from conformance.vectors import differences
from reference_impl.mutants import VECTORS, Mutant, all_mutants
from specs.clauses.catalogue import catalogue
from specs.errors import SpecError


@pytest.mark.parametrize("clause", [each.id for each in catalogue() if each.vectors])
def test_the_reference_is_its_table(clause: str) -> None:
    assert differences(clause) == []


@pytest.mark.parametrize("mutant", all_mutants(VECTORS), ids=lambda mutant: mutant.name)
def test_the_mutant_is_not(mutant: Mutant) -> None:
    assert differences(mutant.killed_by, mutant) != []


def test_a_clause_without_a_table_is_said() -> None:
    with pytest.raises(SpecError, match="no table of vectors decides SND-1"):
        differences("SND-1")
