"""The broker's machines: the reference agrees with the model, each mutant does not, and a program says where."""

from __future__ import annotations

import json

import pytest

from conformance.machines.broker_bench import BrokerBench
from conformance.machines.lock_table import LockTableMachine
from conformance.machines.membership import MembershipMachine
from conformance.machines.message_log import MessageLogMachine
from conformance.machines.offset_table import OffsetTableMachine
from conformance.machines.programs import Disagreement, Program, ProgramMachine, Step, repeat, search
from reference_impl.core.broker import Broker
from reference_impl.mutants import MODEL, all_mutants, load

MACHINES: tuple[type[ProgramMachine], ...] = (
    LockTableMachine,
    OffsetTableMachine,
    MessageLogMachine,
    MembershipMachine,
)
BUDGET = 150
BROKER_MUTANTS = [m.name for m in (*all_mutants(), *all_mutants(MODEL)) if m.broker is not Broker]
UNSEEN: dict[str, str] = {}
"""Mutants of the broker that no machine of a single broker can meet, with the reason."""


def names(machine: type[ProgramMachine]) -> str:
    return machine.NAME


@pytest.mark.parametrize("machine", MACHINES, ids=names)
def test_the_reference_shows_only_what_the_model_allows(machine: type[ProgramMachine]) -> None:
    found = search(machine, 11, 60)
    assert found.broken is None, found.report
    assert found.runs >= 60
    assert len(found.states) >= 10


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("machine", MACHINES, ids=names)
def test_the_reference_shows_only_what_the_model_allows_in_a_long_search(
    machine: type[ProgramMachine], seed: int
) -> None:
    found = search(machine, seed, 1_500, steps=50)
    assert found.broken is None, found.report


@pytest.mark.parametrize("name", BROKER_MUTANTS)
def test_a_mutant_of_the_broker_disagrees_with_the_model(name: str) -> None:
    """Some machine finds it; the program that is left shows it again, and the correct broker agrees with it."""
    bug = load(name)
    for machine in MACHINES:
        found = search(machine, 5, BUDGET, mutant=bug)
        if found.broken is not None:
            assert len(found.broken.steps) <= 30
            assert repeat(found.broken, machine.bench_class, bug) == found.why
            assert repeat(found.broken, machine.bench_class, None) is None
            return
    assert name in UNSEEN, f"no machine of the broker finds {name}"


def test_a_program_is_data_and_a_search_is_its_seed() -> None:
    bug = load("unlock-ignores-owner")
    first, second = (search(LockTableMachine, 3, 50, mutant=bug) for _ in range(2))
    assert first.broken is not None
    assert (first.broken, first.why, first.runs) == (second.broken, second.why, second.runs)
    assert Program.from_json(json.loads(json.dumps(first.broken.to_json()))) == first.broken
    assert first.why in first.report
    assert str(first.broken) in first.report


def lock(who: str, fate: str = "answered", verb: str = "lock") -> Step:
    return Step(verb, {"who": who, "group": "billing", "queues": [["orders", "b0", 0]], "fate": fate})


def bench(*steps: Step) -> BrokerBench:
    made = BrokerBench(None)
    for step in (Step("begin", {"version": "5.x"}), *steps):
        made.do(step)
    return made


@pytest.mark.parametrize("fate", ["request lost", "answer lost"])
def test_an_answer_that_is_lost_leaves_two_pasts_until_another_answer_tells(fate: str) -> None:
    made = bench(lock("alice", fate))
    assert len(made.oracle.states) == 2
    made.do(lock("bob"))
    assert len(made.oracle.states) == 1


def test_what_no_possible_past_explains_is_told_with_what_was_allowed() -> None:
    made = bench(lock("alice"))
    made.oracle.states[0].locks.clear()
    with pytest.raises(Disagreement, match=r"bob asks Lock.*seen was code 0 \[\], allowed code 0 \[Queue"):
        made.do(lock("bob"))


def test_a_crash_forgets_leases_and_at_most_an_interval_of_commits() -> None:
    commit = {"who": "a", "group": "g", "topic": "orders", "queue_id": 0, "fate": "answered"}
    made = bench(
        Step("create_topic", {"topic": "orders", "queues": 1}),
        Step("beat", {"who": "a", "conn": "a", "group": "g", "topics": ["orders"], "fate": "answered"}),
        Step("commit", {**commit, "value": 3}),
        Step("wait", {"ms": 1_400}),
        Step("commit", {**commit, "value": 5}),
        lock("alice"),
        Step("crash", {}),
    )
    stored = {state.offsets["g", "orders", 0] for state in made.oracle.states}
    assert stored == {3, 5}
    assert all(not state.locks for state in made.oracle.states)


def test_steps_without_a_begin_do_nothing() -> None:
    assert repeat(Program("lock_table", (lock("alice"),)), BrokerBench, None) is None
