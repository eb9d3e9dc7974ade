"""The machine for the other modes: nothing is refuted on the reference, and what it makes can be made again."""

from __future__ import annotations

import pytest

from conformance.machines.cluster import ClusterMachine, Collector, Run
from conformance.machines.side_by_side import SideBySideMachine, machine_for
from conformance.replay import difference
from conformance.runner import conform_simulated, run_machine
from reference_impl.mutants import load
from reference_impl.sim.simulate import simulate
from specs.plan.plan import Plan
from specs.profiles import load as load_profile
from specs.verdicts.verdict import ClauseVerdict

SEED = 7
PROFILES = ("reference-concurrent", "reference-key-ordered", "reference-broadcast")
AT_STAKE = {
    "reference-concurrent": {"RTY-10", "CMT-10", "ORD-13", "SND-1", "SND-2"},
    "reference-key-ordered": {"ORD-11", "ORD-12", "CMT-10", "RTY-1", "DLQ-2"},
    "reference-broadcast": {"LSE-12", "CMT-12", "ORD-13", "SND-1"},
}


@pytest.mark.parametrize("name", PROFILES)
def test_the_reference_keeps_the_promises_of_each_mode(name: str) -> None:
    """The clauses of its own are at stake within a few runs; those of members that hold leases are not claimed."""
    result = conform_simulated(None, SEED, load_profile(name), examples=10, floor=1)
    assert result.found == ()
    judged = {each.id: each.verdict for each in result.verdict.clauses}
    assert {judged[clause] for clause in AT_STAKE[name]} == {ClauseVerdict.UPHELD}
    assert judged["LSE-3"] is judged["ORD-3"] is judged["CMT-1"] is ClauseVerdict.NOT_CLAIMED
    assert result.info.config.mode == load_profile(name).mode


@pytest.mark.parametrize("name", PROFILES)
def test_every_run_replays_from_its_plan_to_the_byte(name: str) -> None:
    differences: list[str | None] = []

    def compare(run: Run) -> None:
        again = Plan.from_json(run.plan.to_json())
        differences.append(
            difference(run.rows, simulate(again)[1]) if again == run.plan else "another plan"
        )

    run_machine(
        Collector(lambda refuted: (), on_run=compare, config=load_profile(name).config), SEED, 3
    )
    assert set(differences) == {None}


def test_the_machine_is_chosen_by_profile_and_mutant() -> None:
    """A bug that has its occasion in another mode takes its machine along."""

    def chosen(profile: str, mutant: str | None) -> type:
        config = load_profile(profile).config
        return machine_for(
            Collector(lambda refuted: (), None if mutant is None else load(mutant), config=config)
        )

    assert not issubclass(chosen("reference", None), SideBySideMachine)
    assert issubclass(chosen("reference", "forced-unlock"), ClusterMachine)
    assert issubclass(chosen("reference-concurrent", None), SideBySideMachine)
    assert issubclass(chosen("reference", "key-not-looked-at"), SideBySideMachine)
