"""Simulated targets are found by name and do what a plan says."""

from __future__ import annotations

import asyncio

import pytest

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


def test_a_plan_driven_through_the_target_is_the_simulated_run() -> None:
    async def drive() -> SimulatedTarget:
        target = SimulatedTarget()
        await target.prepare(PLAN)
        await target.start("alice")
        await target.start("p")
        await target.act(PLAN.actions[2])
        await target.close()
        await target.close()
        return target

    target = asyncio.run(drive())
    assert target.rows == simulate(PLAN)[1]
    assert target.info == simulate(PLAN)[0]


def test_a_target_on_disks_runs_any_plan_on_them() -> None:
    """Whatever the plan's own configuration says."""

    async def drive() -> SimulatedTarget:
        target = SimulatedTarget(flush="sync")
        await target.prepare(PLAN)
        await target.close()
        return target

    info = asyncio.run(drive()).info
    assert (info.target, info.run, info.config.flush) == (
        "reference:sync",
        "reference-sync-0",
        "sync",
    )


def test_parties_are_stopped_by_their_kind() -> None:
    async def drive() -> SimulatedTarget:
        target = SimulatedTarget()
        await target.prepare(PLAN)
        await target.start("alice")
        await target.act(Action(100, "heal", {"a": "alice", "b": "b0"}))
        await target.stop("b0")
        await target.start("b0")
        await target.act(Action(300, "heal", {"a": "alice", "b": "b0"}))
        await target.stop("alice")
        await target.close()
        return target

    kinds = [row.kind for row in asyncio.run(drive()).rows]
    assert {Kind.CRASH, Kind.LEAVE} <= set(kinds)


def test_an_unprepared_target_says_so() -> None:
    with pytest.raises(UsageError, match="was not prepared"):
        asyncio.run(SimulatedTarget().act(PLAN.actions[0]))
