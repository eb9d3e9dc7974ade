"""The search for a mutant of messages that are leased one by one, or of a group with generations.

By drawn plans, until one refutes the clause.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from reference_impl.core.coordinator import Coordinator
from reference_impl.core.sequenced_log import SequencedLog
from reference_impl.mutants import Mutant
from reference_impl.sim.grouped import grouped_info, simulate_grouped
from reference_impl.sim.leased import leased_info, simulate_leased
from reference_impl.sim.leased_plans import drawn_plan
from reference_impl.sim.simulate import with_config
from specs.clauses.clause import Clause
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.plan import Plan
from specs.verdicts.examine import examine


@dataclass(frozen=True, slots=True)
class Search:
    """runs: that were made. plan: of the last one, if it refutes the clause; None otherwise. refuted: what it refutes,
    or, where none does, what any run did."""

    runs: int
    plan: Plan | None
    refuted: tuple[str, ...]


def run_of(plan: Plan, bug: Mutant) -> tuple[RunInfo, list[Row]]:
    """The plan's run with the bug; the same plan gives the same rows."""
    if bug.is_of_a_group:
        classes = bug.coordinator or Coordinator, bug.log or SequencedLog
        return grouped_info(plan, bug.name), simulate_grouped(plan, *classes, bug.name)
    assert bug.queue is not None, f"{bug.name} is no bug of leased messages"
    return leased_info(plan, bug.name), simulate_leased(plan, bug.queue, bug.name)


def search(bug: Mutant, clause: Clause, seed: int, most: int) -> Search:
    """Draw plans until the run of one refutes the clause, at most so many."""
    others: set[str] = set()
    for number in range(1, most + 1):
        drawn = drawn_plan(Random(f"{seed} {number}"), seed * 1_000_000 + number)
        plan = with_config(drawn, bug.config)
        info, rows = run_of(plan, bug)
        refuted = examine(rows, info).refuted()
        if clause.id in refuted:
            return Search(number, plan, refuted)
        others.update(refuted)
    return Search(most, None, tuple(sorted(others)))
