"""The client's machines: the reference agrees with its models, each mutant and each planted bug does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import pytest

from inorder.evidence.machines.allocation import AllocationMachine, broken
from inorder.evidence.machines.orderly_consumer import OrderlyConsumerMachine
from inorder.evidence.machines.process_queue import ProcessQueueBench, ProcessQueueMachine
from inorder.evidence.machines.programs import ProgramMachine, Step, repeat, search
from inorder.evidence.machines.side_by_side_consumer import SideBySideConsumerMachine
from inorder.evidence.machines.start_matrix import StartMatrixMachine
from reference_impl.core import allocation
from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.mutants import Mutant, all_mutants, load
from reference_impl.protocol.message import StoredMessage
from specs.model.orderly_lane import NOTHING, start_of
from specs.vocabulary import Queue
from tests.inorder.evidence.machines.kills import searched

CONSUMER_MACHINES: tuple[type[ProgramMachine], ...] = (
    OrderlyConsumerMachine,
    StartMatrixMachine,
    SideBySideConsumerMachine,
)
MACHINES = (*CONSUMER_MACHINES, ProcessQueueMachine, AllocationMachine)
BUDGET = 250
STEPS = 40


def names(machine: type[ProgramMachine]) -> str:
    return machine.NAME


def is_of_the_orderly_consumer(mutant: Mutant) -> bool:
    return mutant.consumer is not None and issubclass(mutant.consumer, OrderlyConsumer)


KILLS = {
    "orderly_consumer": (
        "commit-covers-running-call",
        "commit-one-too-far",
        "commit-result-ignored",
        "commit-though-suspended",
        "committed-before-the-dead-letter",
        "dead-letter-failure-ignored",
        "dead-letter-sent-twice",
        "dead-letter-skipped",
        "delayed-unlock",
        "dropped-lane-goes-on",
        "dropped-lane-reports-on",
        "dropped-lane-retried",
        "failed-query-taken-for-missing",
        "fetched-and-forgotten",
        "first-of-batch-committed",
        "forced-unlock",
        "given-up-at-once",
        "given-up-but-kept",
        "given-up-lane-stands-still",
        "given-up-too-early",
        "given-up-with-its-batch-again",
        "guard-ignores-expiry",
        "guard-inverted",
        "guard-locked-or-fresh",
        "handover-keeps-lease",
        "handover-persists-last",
        "idle-lane-looked-at-later",
        "lane-added-without-lease",
        "lane-stands-still",
        "leases-from-nobody",
        "loop-without-guard",
        "manual-success-committed",
        "never-given-up",
        "newest-first",
        "not-fifo-at-first",
        "offset-of-an-earlier-life",
        "one-delivery-too-many",
        "pull-commits-old-offset",
        "refusal-ignored",
        "refused-lease-still-consumes",
        "renewal-forgotten",
        "retry-not-counted",
        "rollback-forgotten",
        "same-client-id",
        "shutdown-keeps-leases",
        "shutdown-leaves-tasks",
        "shutdown-persists-last",
        "shutdown-waits-for-nobody",
        "stale-commit-after-release",
        "starts-at-end",
        "suspend-default-forgotten",
        "suspend-ignored",
        "suspend-moves-on",
        "suspend-not-clamped",
        "suspended-batch-back-in-part",
        "suspended-lane-keeps-its-thread",
        "suspension-stops-all-lanes",
        "throw-taken-for-success",
        "two-pullers",
        "two-tasks-per-lane",
        "unlock-while-listener-runs",
    ),
    "start_matrix": (
        "error-taken-for-not-found",
        "error-taken-for-zero",
        "time-wins-over-what-is-stored",
    ),
    "side_by_side_consumer": (
        "highest-finished-committed",
        "key-goes-on-without-the-failed",
        "key-held-back-by-another",
        "key-not-looked-at",
        "send-back-failure-ignored",
    ),
}
"""Which mutant of the orderly consumer is found by which machine. `same-client-id` needs two processes."""
BY_NAME = {machine.NAME: machine for machine in CONSUMER_MACHINES}


@pytest.mark.parametrize("machine", MACHINES, ids=names)
def test_the_reference_does_only_what_the_model_allows(machine: type[ProgramMachine]) -> None:
    found = search(machine, 21, 80)
    assert found.broken is None, found.report
    assert found.runs >= 80
    assert len(found.states) >= 50


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES, ids=names)
def test_the_reference_does_only_what_the_model_allows_in_a_long_search(
    machine: type[ProgramMachine],
) -> None:
    found = search(machine, 1, 300, steps=60)
    assert found.broken is None, found.report


@pytest.mark.parametrize(("machine", "name"), list(searched(KILLS)))
def test_a_mutant_of_the_consumer_disagrees_with_the_model(machine: str, name: str) -> None:
    """The program that is left shows it again, and the correct consumer agrees with the same program."""
    bug, chosen = load(name), BY_NAME[machine]
    found = search(chosen, 5, BUDGET, STEPS, bug)
    assert found.broken is not None
    assert len(found.broken.steps) <= 25
    assert repeat(found.broken, chosen.bench_class, bug) == found.why
    assert repeat(found.broken, chosen.bench_class, None) is None


NEVER_MET = {"lock-error-is-a-grant", "offset-error-is-nothing-stored"}
"""No program of these machines has a request answered with an error."""


def test_most_mutants_of_the_consumer_are_found() -> None:
    known = {m.name for m in all_mutants() if is_of_the_orderly_consumer(m)} - NEVER_MET
    found = {
        name
        for machine, names in KILLS.items()
        if machine != "side_by_side_consumer"
        for name in names
    }
    assert found <= known
    assert len(found) >= 0.75 * len(known)


# ---------------------------------------------------------------- the process queue


class PutsTwice(ProcessQueue):
    def put(self, messages: Iterable[StoredMessage]) -> bool:
        self.held.clear()
        return super().put(messages)


class PutsBackAtTheEnd(ProcessQueue):
    def _insert(self, message: StoredMessage) -> None:
        self.pending.append(message)


class CommitsOneTooFar(ProcessQueue):
    def commit(self) -> int:
        value = super().commit()
        return value + 1 if value > 0 else value


class CountsForEver(ProcessQueue):
    def commit(self) -> int:
        kept = dict(self.extra_times)
        value = super().commit()
        self.extra_times.update(kept)
        return value


class RollsBackOnlyOne(ProcessQueue):
    def roll_back(self) -> None:
        self.make_again([self.taken[offset] for offset in sorted(self.taken)][-1:])


class PutsBackStrangers(ProcessQueue):
    def make_again(self, batch: Sequence[StoredMessage]) -> None:
        for message in reversed(batch):
            self.taken.pop(message.queue_offset, None)
            self._insert(message)


class AsksForASecondTask(ProcessQueue):
    def put(self, messages: Iterable[StoredMessage]) -> bool:
        super().put(messages)
        return bool(self.pending)


@pytest.mark.parametrize(
    "queue",
    [
        PutsTwice,
        PutsBackAtTheEnd,
        CommitsOneTooFar,
        CountsForEver,
        RollsBackOnlyOne,
        PutsBackStrangers,
        AsksForASecondTask,
    ],
)
def test_a_broken_process_queue_is_found_within_eight_steps(queue: type[ProcessQueue]) -> None:
    bench = type("BrokenBench", (ProcessQueueBench,), {"queue_class": queue})
    machine = type("BrokenMachine", (ProcessQueueMachine,), {"bench_class": bench})
    found = search(machine, 5, BUDGET)
    assert found.broken is not None
    assert len(found.broken.steps) <= 8


# ---------------------------------------------------------------- allocation


def first_gets_all(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
    return list(queues) if members and client_id == members[0] else []


def last_is_forgotten(
    client_id: str, queues: Sequence[Queue], members: Sequence[str]
) -> list[Queue]:
    return allocation.by_circle(client_id, queues[:-1], members)


def strangers_too(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
    return allocation.averagely(client_id, queues, sorted({*members, client_id}))


def by_number(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
    """Not consistent: who comes moves the queues of the others."""
    return allocation.by_circle(client_id, queues, members)


class EachTimeAnother:
    turn: ClassVar[int] = 0

    def __call__(
        self, client_id: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        EachTimeAnother.turn += 1
        turned = [*members[EachTimeAnother.turn % max(1, len(members)) :], *members]
        return allocation.averagely(client_id, queues, list(dict.fromkeys(turned)))


Allocate = Callable[[str, Sequence[Queue], Sequence[str]], list[Queue]]


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("AVG", first_gets_all),
        ("CIRCLE", last_is_forgotten),
        ("AVG", strangers_too),
        ("CONSISTENT_HASH", by_number),
        ("AVG", EachTimeAnother()),
        ("NEARBY", allocation.averagely),
        ("MACHINE_ROOM", allocation.averagely),
        ("CONFIG", allocation.averagely),
    ],
)
def test_a_broken_strategy_is_found(name: str, instead: Allocate) -> None:
    bench = broken(**{name: instead})
    machine = type("BrokenMachine", (AllocationMachine,), {"bench_class": bench})
    found = search(machine, 5, BUDGET)
    assert found.broken is not None
    assert len(found.broken.steps) <= 10


# ---------------------------------------------------------------- the model of a start


@pytest.mark.parametrize(
    ("consume_from", "topic_starts", "retry_starts"),
    [("first", 0, 0), ("last", 9, 0), ("timestamp", 4, 9)],
)
def test_the_start_matrix(consume_from: str, topic_starts: int, retry_starts: int) -> None:
    """A stored offset always wins; without one the retry topic differs from the others."""
    assert start_of(consume_from, False, NOTHING, 9, 4) == topic_starts
    assert start_of(consume_from, True, NOTHING, 9, 4) == retry_starts
    assert {start_of(consume_from, retry, 7, 9, 4) for retry in (True, False)} == {7}


def test_a_program_shows_what_was_expected() -> None:
    """The shortest program for a suspend time that is not clamped, as a person reads it."""
    bug = load("suspend-not-clamped")
    found = search(OrderlyConsumerMachine, 5, BUDGET, STEPS, bug)
    assert found.broken is not None
    assert "before the suspend time is over" in found.why or "waits for" in found.why
    assert found.broken.steps[0].do == "begin"
    assert any(step.do == "returns" for step in found.broken.steps)
    assert str(Step("wait", {"ms": 3})) == "wait ms=3"
