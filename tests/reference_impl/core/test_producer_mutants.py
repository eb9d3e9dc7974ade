"""Each producer mutant in a simulated cluster: the clause that it names is refuted, and for the correct one none."""

from __future__ import annotations

import pytest

from reference_impl.mutants import Mutant, all_mutants, load
from reference_impl.sim.simulate import simulate, with_config
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology
from specs.verdicts.examine import examine


def full_for_a_while() -> Plan:
    """Two producers send with and without keys, while the disks of both brokers are full for half a second each."""
    sends = [
        Action(
            100 + 50 * n, "send", {"client": f"p{1 + n % 2}", "topic": "orders", "count": 3, **key}
        )
        for n in range(40)
        for key in ({"key": f"k{n % 3}"}, {})
    ]
    troubles = [
        Action(500, "disk_full", {"broker": "b0"}),
        Action(1_000, "disk_room", {"broker": "b0"}),
        Action(900, "disk_full", {"broker": "b1"}),
        Action(1_400, "disk_room", {"broker": "b1"}),
    ]
    starts = [Action(0, "start", {"client": client}) for client in ("p1", "p2", "c1")]
    return Plan(
        seed=1,
        topology=Topology(("b0", "b1"), (TopicPlan("orders", 2),), ("billing",)),
        clients=(
            ClientPlan("p1", "producer"),
            ClientPlan("p2", "producer"),
            ClientPlan("c1", "consumer", "billing", ("orders",)),
        ),
        actions=tuple(sorted([*starts, *sends, *troubles], key=lambda action: action.at_ms)),
        until_ms=3_000,
    )


def refuted(mutant: Mutant | None) -> set[str]:
    plan = full_for_a_while()
    info, rows = simulate(plan if mutant is None else with_config(plan, mutant.config), mutant)
    return set(examine(rows, info).refuted())


def test_the_correct_producer_breaks_nothing() -> None:
    assert refuted(None) == set()


@pytest.mark.parametrize("name", [mutant.name for mutant in all_mutants() if mutant.producer])
def test_the_mutant_is_refuted_in_its_clause(name: str) -> None:
    mutant = load(name)
    assert mutant.killed_by in refuted(mutant)
