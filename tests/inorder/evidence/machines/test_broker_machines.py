"""The broker's machines: the reference agrees with the model, each mutant does not, and a program says where."""

from __future__ import annotations

import json

import pytest

from inorder.evidence.machines.broker_bench import BrokerBench
from inorder.evidence.machines.lock_table import LockTableMachine
from inorder.evidence.machines.membership import MembershipMachine
from inorder.evidence.machines.message_log import MessageLogMachine
from inorder.evidence.machines.offset_table import OffsetTableMachine
from inorder.evidence.machines.programs import (
    Disagreement,
    Program,
    ProgramMachine,
    Step,
    repeat,
    search,
)
from reference_impl.core.broker import Broker
from reference_impl.mutants import MODEL, all_mutants, load
from tests.inorder.evidence.machines.kills import searched

MACHINES: tuple[type[ProgramMachine], ...] = (
    LockTableMachine,
    OffsetTableMachine,
    MessageLogMachine,
    MembershipMachine,
)
BUDGET = 150
KILLS = {
    "lock_table": (
        "batch-all-or-nothing",
        "batch-answer-loses-grants",
        "batch-answers-what-was-asked",
        "dead-letter-lost",
        "dead-letter-of-another-group",
        "dead-letter-returns-as-new",
        "dead-letter-stored-twice",
        "dead-letter-waits-for-delay-level",
        "delay-of-the-level-below",
        "error-answered-as-not-found",
        "exhausted-circles-through-retry-topic",
        "expired-at-the-limit",
        "expired-not-freed",
        "expiry-ignored",
        "fetch-reads-the-disk",
        "gone-member-listed",
        "key-without-group",
        "key-without-queue-id",
        "key-without-topic",
        "lease-freed-at-disconnect",
        "own-lock-refused-when-asked-again",
        "refusal-refreshes-owner",
        "renewal-does-not-refresh",
        "restart-releases-what-waits",
        "takeover-keeps-old-owner",
        "takeover-keeps-old-timestamp",
        "unlock-frees-nothing",
        "unlock-ignores-owner",
    ),
    "offset_table": (
        "acknowledged-send-dropped",
        "body-of-another",
        "commit-race-loses-first",
        "empty-read-commits-zero",
        "later-send-stored-first",
        "offset-given-twice",
        "offset-overflow-to-min",
        "offset-skipped",
        "offsets-written-once",
        "reset-only-in-memory",
        "reset-overwritten-by-a-commit",
        "reset-written-with-the-next-commit",
    ),
    "message_log": (
        "batch-begins-with-the-last-one",
        "refused-though-stored",
        "stored-twice-at-once",
    ),
}
"""Which mutant of the broker is found by which machine."""
BY_NAME = {machine.NAME: machine for machine in MACHINES}


def names(machine: type[ProgramMachine]) -> str:
    return machine.NAME


@pytest.mark.parametrize("machine", MACHINES, ids=names)
def test_the_reference_shows_only_what_the_model_allows(machine: type[ProgramMachine]) -> None:
    found = search(machine, 11, 60)
    assert found.broken is None, found.report
    assert found.runs >= 60
    assert len(found.states) >= 10


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES, ids=names)
def test_the_reference_shows_only_what_the_model_allows_in_a_long_search(
    machine: type[ProgramMachine],
) -> None:
    programs = 100 if machine is OffsetTableMachine else 300  # it takes half a second for each
    found = search(machine, 1, programs, steps=50)
    assert found.broken is None, found.report


@pytest.mark.parametrize(("machine", "name"), list(searched(KILLS)))
def test_a_mutant_of_the_broker_disagrees_with_the_model(machine: str, name: str) -> None:
    """The program that is left shows it again, and the correct broker agrees with the same program."""
    bug, chosen = load(name), BY_NAME[machine]
    found = search(chosen, 5, BUDGET, mutant=bug)
    assert found.broken is not None
    assert len(found.broken.steps) <= 30
    assert repeat(found.broken, chosen.bench_class, bug) == found.why
    assert repeat(found.broken, chosen.bench_class, None) is None


SHOWN_BY_TIME_ALONE = (
    "commit-leaves-it-open",
    "delayed-again-after-a-restart",
    "given-up-half-is-committed",
    "level-lost-on-release",
    "property-lost-on-release",
)
"""Their bugs, like those of SND-11 to 13 and LIV-4, show when a level's time is over, a half message was committed or
somebody waits: in the history of a run, and in no answer to a request."""


def test_most_mutants_of_the_broker_are_found() -> None:
    known = {
        m.name
        for m in (*all_mutants(), *all_mutants(MODEL))
        if m.broker is not Broker
        and m.name not in SHOWN_BY_TIME_ALONE
        and m.killed_by not in ("SND-11", "SND-12", "SND-13", "LIV-4")
    }
    found = {name for names in KILLS.values() for name in names}
    assert found <= known
    assert len(found) >= 0.75 * len(known)


def test_a_program_is_data_and_a_search_is_its_seed() -> None:
    bug = load("unlock-ignores-owner")
    first, second = (search(LockTableMachine, 3, 50, mutant=bug) for _ in range(2))
    assert first.broken is not None
    assert (first.broken, first.why, first.runs) == (second.broken, second.why, second.runs)
    assert Program.from_json(json.loads(json.dumps(first.broken.to_json()))) == first.broken
    assert first.why in first.report
    assert str(first.broken) in first.report


def lock(who: str, fate: str = "answered", verb: str = "lock") -> Step:
    return Step(
        verb, {"who": who, "group": "billing", "queues": [["orders", "b0", 0]], "fate": fate}
    )


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
    with pytest.raises(
        Disagreement, match=r"bob asks Lock.*seen was code 0 \[\], allowed code 0 \[Queue"
    ):
        made.do(lock("bob"))


def test_a_crash_forgets_leases_and_at_most_an_interval_of_commits() -> None:
    commit = {"who": "a", "group": "g", "topic": "orders", "queue_id": 0, "fate": "answered"}
    made = bench(
        Step("create_topic", {"topic": "orders", "queues": 1}),
        Step(
            "beat",
            {"who": "a", "conn": "a", "group": "g", "topics": ["orders"], "fate": "answered"},
        ),
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
