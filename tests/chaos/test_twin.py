"""Scenarios in virtual time: the same steps, the same verdicts, a plan that repeats the run to the byte."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from chaos.cli import find_target, prepare
from chaos.runner import run_scenario, twin_plan
from chaos.scenario import load
from chaos.twin import play
from conformance.replay import repeat
from conformance.shrink_run import shrink_run
from reference_impl.mutants import load as load_mutant
from reference_impl.sim.simulate import simulate
from specs import profiles
from specs.verdicts.examine import examine
from specs.verdicts.verdict import RunVerdict


def test_a_scenario_is_done_in_virtual_time_and_every_fault_is_attested(tmp_path: Path) -> None:
    target = find_target("reference", "process")
    verdict, history = run_scenario(
        load("consumer-paused"), target, profiles.load("reference"), seed=1, out=tmp_path / "run"
    )
    assert verdict.verdict is RunVerdict.UPHELD
    assert verdict.faults == (("pause c1", True),)
    assert "c1 was silent" in (verdict.tool or {})["evidence"]
    assert history.info.plan is not None
    assert "steps" not in history.info.plan


def test_a_scenarios_run_is_repeated_to_the_byte_by_its_plan(tmp_path: Path) -> None:
    target = find_target("mutant:lease-freed-at-disconnect", "process")
    out = tmp_path / "run"
    verdict, _history = run_scenario(
        load("consumer-killed"), target, profiles.load("reference"), seed=1, out=out
    )
    assert verdict.verdict is RunVerdict.REFUTED
    assert repeat(out).difference is None


def test_a_scenarios_run_shrinks_to_one_fault(tmp_path: Path) -> None:
    target = find_target("mutant:lease-freed-at-disconnect", "process")
    run_scenario(
        load("consumer-killed"), target, profiles.load("reference"), seed=1, out=tmp_path / "run"
    )
    shrunk = shrink_run(tmp_path / "run", tmp_path / "small", budget=40)
    assert shrunk.clause.id == "LSE-1"
    assert shrunk.after.faults == 1
    assert shrunk.after.actions < shrunk.before.actions / 4


def test_two_seeds_are_two_schedules_and_one_seed_is_one() -> None:
    scenario = load("paused-and-killed")
    plans = [play(twin_plan(scenario, seed)).plan.to_json() for seed in (1, 1, 2)]
    first, same, other = (json.dumps([a for a in p["actions"] if a["do"] != "send"]) for p in plans)
    assert first == same
    assert first != other


def test_a_fault_of_everybodys_link_befalls_each_client() -> None:
    twin = play(twin_plan(load("link-down-for-long"), 1))
    cut = {action.args["a"] for action in twin.plan.actions if action.do == "cut"}
    assert cut == {"shop", "c1", "c2"}
    assert twin.faults
    assert all(fault.shown is not None for fault in twin.faults)


def test_a_wait_in_vain_ends_in_a_verdict() -> None:
    plan = twin_plan(load("consumer-killed"), 1)
    steps = tuple(replace(step, deadline_ms=5_000) for step in plan.steps)
    twin = play(replace(plan, steps=steps), load_mutant("expired-not-freed"))
    assert "did not come" in twin.info.environment
    assert examine(twin.rows, twin.info).refuted()


def test_looking_at_lanes_changes_nothing() -> None:
    plan = twin_plan(load("consumer-killed"), 1)
    watched = play(plan, look=True)
    assert watched.states
    assert watched.rows == play(plan).rows == simulate(watched.plan)[1]


def test_all_scenarios_apply_to_the_simulated_reference() -> None:
    asked, left_out = prepare((), "reference", None, "process")
    assert (asked.backend, left_out) == ("simulated", {})
