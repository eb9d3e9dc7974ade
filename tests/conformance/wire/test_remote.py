"""A cluster that runs already, and is somebody's: two searches one after the other, and nothing of hers is touched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.run import run, run_again
from conformance.targets.rocketmq import remote
from conformance.targets.systems import ApacheOnThisMachine, ServedReference, System
from conformance.wire.client import WireClient
from conformance.wire.runner import SHORT_LEASES, conform_wire
from conformance.wire.target import WireTarget
from specs import profiles
from specs.errors import UsageError
from specs.history.journal import Journal
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology
from specs.verdicts.verdict import ClauseVerdict, RunVerdict
from specs.vocabulary import Kind, Lane, Queue

HERS = replace(SHORT_LEASES, broker_lease_ms=3_000, persist_first_ms=2 * SHORT_LEASES.persist_ms)
"""Nobody tells us what her brokers were told."""
GUESSED_MS = 1_000
HER_QUEUE = Queue("orders", "b0", 0)


def guessing(system: System) -> WireTarget:
    """The target that she names, with a guess at the lease time that a test has the time for."""
    target = remote(system.namesrv)
    assert isinstance(target, WireTarget)
    return replace(target, config=replace(target.config, broker_lease_ms=GUESSED_MS))


def refuted(target: WireTarget, out: Path, examples: int) -> list[str]:
    profile = profiles.load(target.profile)
    verdict, history = conform_wire(target, profile, seed=1, examples=examples, out=out, floor=1)
    assert verdict.verdict is not RunVerdict.UPHELD or history.why_cut == ()
    return [f"{one.id}: {one.explanation}" for one in verdict.of(ClauseVerdict.REFUTED)]


def served() -> AbstractContextManager[System]:
    return ServedReference(HERS, "async")


def apache() -> AbstractContextManager[System]:
    return ApacheOnThisMachine("5.4.0", HERS)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "opens",
    [
        served,
        pytest.param(
            apache,
            marks=[
                pytest.mark.apache,
                pytest.mark.skipif(
                    not jars.present("5.4.0"), reason="the jars of RocketMQ are not here"
                ),
            ],
        ),
    ],
)
def test_two_searches_on_one_cluster_find_nothing_wrong(
    opens: Callable[[], AbstractContextManager[System]], tmp_path: Path
) -> None:
    """Though the lease is another one than was taken for it."""
    with opens() as system:
        assert refuted(guessing(system), tmp_path / "first", 3) == []
        assert refuted(guessing(system), tmp_path / "second", 3) == []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_guess_that_was_taken_for_knowledge_would_blame_the_broker(tmp_path: Path) -> None:
    """So the test above would see it."""
    with served() as system:
        knowing = replace(guessing(system), lease_known=True)
        assert refuted(knowing, tmp_path / "run", 2) != []


def test_a_plan_is_done_twice_and_hers_is_left_alone(tmp_path: Path) -> None:
    """The second time under other names; a plan that names what is there is refused."""
    plan = Plan(
        topology=Topology(
            topics=(TopicPlan("inorder-x-orders", 1),), groups=("inorder-x-billing",)
        ),
        config=replace(SHORT_LEASES, broker_lease_ms=GUESSED_MS),
        clients=(
            ClientPlan("inorder-x-p1", "producer"),
            ClientPlan("inorder-x-c1", "consumer", "inorder-x-billing", ("inorder-x-orders",)),
        ),
        actions=(
            Action(0, "start", {"client": "inorder-x-p1"}),
            Action(0, "start", {"client": "inorder-x-c1"}),
            Action(
                500, "send", {"client": "inorder-x-p1", "topic": "inorder-x-orders", "count": 2}
            ),
        ),
        until_ms=1_500,
    )
    with served() as system, Journal(tmp_path, "her") as journal:
        hers = WireClient("hers", system.brokers["b0"], "b0", journal)
        hers.create_topic("orders", 1)
        hers.heartbeat("payments", "orders")
        hers.send(HER_QUEUE, "hers-1")
        target = remote(system.namesrv)
        first = run(plan, target, tmp_path / "first", prefix="inorder-x-")
        second = run_again(first.info, target, tmp_path / "second")
        with pytest.raises(
            UsageError, match="the topic inorder-x-orders is on the brokers already"
        ):
            run(plan, target, tmp_path / "third", prefix="inorder-x-")
        assert hers.fetch(Lane("payments", *HER_QUEUE))[1] in (None, 0)
        assert hers.living("payments") == ["hers"]
        hers.close()
    for history in (first, second):
        rows = [row for row in history.rows() if row.kind is Kind.DELIVER]
        assert len(rows) == 2
        assert {row.topic == "orders" or row.group == "payments" for row in rows} == {False}
        assert history.info.config.untold
    topics = [{row.topic for row in history.rows() if row.topic} for history in (first, second)]
    assert not topics[0] & topics[1]
