"""Drawn runs of leased messages, and of groups with generations, correct and with each of the bugs: judges find what
judges find, and no more."""

from __future__ import annotations

from random import Random

import pytest

from inorder.evidence.kill_matrix.of_leases import run_of
from reference_impl.mutants import LEASED, every_mutant
from reference_impl.sim.grouped import grouped_info, simulate_grouped
from reference_impl.sim.leased import leased_info, simulate_leased
from reference_impl.sim.leased_plans import drawn_plan
from reference_impl.sim.simulate import with_config
from spark_checkers.catalogue import all_judges
from specs.clauses.catalogue import all_clauses
from tests.spark_checkers.judging import by_columns, in_memory

PLANS = 4
BUGS = {bug.name: bug for bug in every_mutant() if bug.oracle == LEASED}
FAMILIES = ("PML", "FLR", "KEY", "GEN", "ORD-15")
TWINS = [judge for judge in all_judges() if judge.id.startswith(FAMILIES)]
RIGHT = {"leased": (leased_info, simulate_leased), "grouped": (grouped_info, simulate_grouped)}
CLAUSES = [clause for clause in all_clauses() if clause.id in {judge.id for judge in TWINS}]


@pytest.mark.parametrize("name", [*RIGHT, *BUGS])
def test_both_find_the_same_in_drawn_runs(name: str) -> None:
    """Every opportunity, every piece of evidence; a bug is found in one of them at least, and nothing without one."""
    broken = set()
    for number in range(1, PLANS + 1):
        plan = drawn_plan(Random(f"judges {number}"), number)
        if name in RIGHT:
            info, rows = (made(plan) for made in RIGHT[name])
        else:
            info, rows = run_of(with_config(plan, BUGS[name].config), BUGS[name])
        judged = in_memory(rows, info, CLAUSES)
        assert by_columns(rows, info, TWINS) == judged
        assert any(times for times, _ in judged.values())
        broken |= {clause for clause, (_, found) in judged.items() if found}
    assert broken == set() if name in RIGHT else BUGS[name].killed_by in broken
