"""How a search saturates: some points of how what it has reached grew."""

from __future__ import annotations

import pytest

from specs.verdicts.verdict import GROWTH_POINTS, coverage_of


@pytest.mark.parametrize("runs", [1, 2, 40, 150, 5_000])
def test_growth_is_told_by_a_few_points_up_to_the_last_run(runs: int) -> None:
    """Each new run reaches one state more, and one that is known."""
    coverage = coverage_of([{0, run} for run in range(runs)])
    assert len(coverage.growth) <= GROWTH_POINTS
    assert coverage.growth[0] == (1, 1)
    assert coverage.growth[-1] == (runs, coverage.states)
    assert list(coverage.growth) == sorted(set(coverage.growth))
    assert all(states == at for at, states in coverage.growth)


def test_a_search_without_a_run_has_no_growth() -> None:
    assert coverage_of([]).growth == ()
    assert "growth" not in coverage_of([]).to_json()
