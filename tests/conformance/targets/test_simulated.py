"""Simulated targets are found by name and do what a plan says."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.run import run
from conformance.targets.base import ClockKind, find, names
from conformance.targets.simulated import SimulatedTarget, mutant_names
from reference_impl.mutants import MODEL, all_mutants
from reference_impl.sim.simulate import simulate
from specs.errors import UsageError
from specs.plan.plan import Action, ClientPlan, Plan
from specs.vocabulary import Kind

PLAN = Plan(
    clients=(ClientPlan("alice", "consumer", "billing", ("orders",)), ClientPlan("p", "producer")),
    actions=(
        Action(0, "start", {"client": "alice"}),
        Action(0, "start", {"client": "p"}),
        Action(50, "send", {"client": "p", "topic": "orders", "key": "k", "count": 3}),
    ),
    until_ms=60,
)


def test_both_simulated_targets_are_registered() -> None:
    assert {"reference", "mutant"} <= set(names())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("reference:5", "takes no argument"),
        ("reference:snyc", "did you mean sync"),
        ("mutant", "name the mutant"),
        ("mutant:", "name the mutant"),
        ("mutant:unlock-ignores-ownr", "did you mean unlock-ignores-owner"),
        (f"mutant:{all_mutants(MODEL)[0].name}", "only the wire rules do"),
        ("referense", "did you mean reference"),
    ],
)
def test_a_wrong_name_is_told_with_what_was_probably_meant(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        find(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "name", ["reference", "reference:sync", "reference:async", f"mutant:{mutant_names()[0]}"]
)
def test_a_target_is_named_as_it_is_asked_for(name: str) -> None:
    target = find(name)
    assert (target.name, target.clock) == (name, ClockKind.VIRTUAL)
    assert set(target.parties) == {"broker", "client", "producer"}


def test_a_run_on_the_target_is_the_simulated_run(tmp_path: Path) -> None:
    """To the byte: the run adds nothing to what the target writes down itself."""
    history = run(PLAN, SimulatedTarget(), tmp_path / "run")
    info, rows = simulate(PLAN)
    assert list(history.rows()) == rows
    for name in ("target", "parties", "settles", "config", "plan", "clock_bounds_us"):
        assert getattr(history.info, name) == getattr(info, name)
    told = {kind for kinds in (info.records or {}).values() for kind in kinds}
    assert told == {kind for kinds in (history.info.records or {}).values() for kind in kinds}


def test_a_target_on_disks_runs_any_plan_on_them(tmp_path: Path) -> None:
    """Whatever the plan's own configuration says."""
    target = SimulatedTarget(flush="sync")
    history = run(PLAN, target, tmp_path / "run")
    assert (history.info.target, target.info.config.flush) == ("reference:sync", "sync")
    assert history.info.config.flush == "sync"


def test_parties_go_and_come_by_the_plan(tmp_path: Path) -> None:
    more = (
        Action(100, "broker_crash", {"broker": "b0"}),
        Action(200, "broker_restart", {"broker": "b0"}),
        Action(300, "stop", {"client": "alice"}),
    )
    plan = replace(PLAN, actions=(*PLAN.actions, *more), until_ms=400)
    history = run(plan, SimulatedTarget(), tmp_path / "run")
    rows = list(history.rows())
    assert rows == simulate(plan)[1]
    assert {Kind.CRASH, Kind.LEAVE} <= {row.kind for row in rows}


def test_an_unprepared_target_says_so() -> None:
    with pytest.raises(UsageError, match="was not prepared"):
        asyncio.run(SimulatedTarget().act(PLAN.actions[0]))
