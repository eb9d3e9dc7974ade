"""The kill matrix: the same result however many work on it, and every known bug found."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest

from inorder.evidence.kill_matrix.kill import kill
from inorder.evidence.kill_matrix.matrix import Matrix, chosen, run_matrix
from inorder.evidence.kill_matrix.minimal import LARGEST
from reference_impl.mutants import every_mutant
from specs.errors import UsageError

FEW = ("own-lock-refused-when-asked-again", "newest-first")
SECONDS = ("search_s", "shrink_s", "cpu_s")


def without_seconds(matrix: Matrix) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in each.to_json().items() if name not in SECONDS}
        for each in matrix.kills
    ]


def test_a_few_mutants_are_killed_the_same_by_one_worker_and_by_two() -> None:
    """Each search depends on its mutant and the seed alone."""
    told: list[tuple[int, int]] = []
    two = run_matrix(FEW, 3, workers=2, done=lambda _, done, total: told.append((done, total)))
    one = run_matrix(FEW, 3, workers=1)
    assert without_seconds(one) == without_seconds(two)
    assert told == [(number, len(FEW)) for number in range(1, len(FEW) + 1)]
    assert (one.exit_code, one.bad) == (0, ())
    assert multiprocessing.active_children() == []


def test_a_mutant_of_the_wire_is_killed_by_its_rule() -> None:
    """Where no well-behaved client notices, one answer is the proof."""
    found = kill("offset-overflow-to-min", 1)
    assert (found.killed, found.clause, found.is_good, found.witness) == (True, "WIR-9", True, ())
    assert "next offset 0" in found.explanation


def test_a_mutant_of_a_function_is_killed_by_its_table() -> None:
    """The first line that differs is the proof."""
    found = kill("ring-hashed-otherwise", 1)
    assert (found.killed, found.clause, found.is_good, found.witness) == (True, "ASG-3", True, ())
    assert found.explanation.startswith("CONSISTENT_HASH, ")


def test_a_search_that_is_too_short_leaves_a_survivor() -> None:
    """One run is not enough; the matrix says so, and is not good."""
    matrix = run_matrix(("throw-taken-for-success",), 1, examples=1)
    assert [each.name for each in matrix.survivors] == ["throw-taken-for-success"]
    assert (matrix.exit_code, matrix.kills[0].examples, matrix.median) == (1, 1, None)


def test_all_mutants_are_chosen_unless_some_are_named() -> None:
    """Those of all oracles, by name."""
    everything = {mutant.name for mutant in every_mutant()}
    assert set(chosen()) == everything
    assert chosen(("suspend-ignored", "suspend-ignored")) == ("suspend-ignored",)
    with pytest.raises(UsageError, match="there is no mutant nobody"):
        chosen(("nobody",))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_mutant_is_killed_by_the_clause_that_it_names() -> None:
    """Within the budget, with a minimal witness of at most ten events and six in the median."""
    matrix = run_matrix(chosen(), 1)
    assert [each.name for each in matrix.bad] == []
    assert max(matrix.witness_sizes) <= LARGEST
    assert matrix.median is not None
    assert matrix.median <= 6
