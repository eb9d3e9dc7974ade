"""What is in order stays so when it is tapped: nothing is refuted that did not happen."""

from __future__ import annotations

from pathlib import Path

from conformance.targets.systems import ReferenceOnSockets
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Kind, Outcome
from tests.conformance.tap.tapping import Seen, tap_before
from tests.conformance.tap.test_tap import work_behind

CONFIG = Config(
    max_reconsume_times=1,
    suspend_ms=10,
    lock_interval_ms=500,
    rebalance_ms=200,
    heartbeat_ms=200,
    persist_ms=100,
    long_poll_ms=300,
)
CLIENTS = (
    ClientPlan("shop", "producer", "shops"),
    ClientPlan("c1", "consumer", "billing", topics=("orders",)),
    ClientPlan("c2", "consumer", "billing", topics=("orders",)),
)


def play(
    seen: Seen, system: ReferenceOnSockets, folder: Path, *actions: Action, until_ms: int
) -> None:
    plan = Plan(
        topology=Topology(topics=(TopicPlan("orders", 2),), groups=("billing",)),
        config=CONFIG,
        clients=CLIENTS,
        actions=actions,
        listener=(ListenerRule(Outcome.SUSPEND, number=3, duration_ms=1),),
        until_ms=until_ms,
    )
    work_behind(seen.namesrv, system.brokers, plan, folder)


def test_healthy_work_of_our_own_clients_is_not_refuted(tmp_path: Path) -> None:
    """Messages that are given up, members that come and go: what a tap can tell is upheld, the rest is not judged."""
    with (
        ReferenceOnSockets(CONFIG) as system,
        tap_before(system.namesrv, tmp_path, CONFIG.to_json(), "reference") as seen,
    ):
        play(
            seen,
            system,
            tmp_path / "own",
            Action(0, "start", {"client": "shop"}),
            Action(50, "start", {"client": "c1"}),
            Action(100, "send", {"client": "shop", "topic": "orders", "key": "k", "count": 4}),
            Action(1_000, "start", {"client": "c2"}),
            Action(2_500, "send", {"client": "shop", "topic": "orders", "count": 6}),
            Action(3_500, "stop", {"client": "c1"}),
            Action(4_000, "send", {"client": "shop", "topic": "orders", "count": 4}),
            Action(5_000, "stop", {"client": "c2"}),
            until_ms=5_100,
        )
    assert seen.clauses("refuted") == [], seen.text
    kinds = {row.kind for row in seen.rows()}
    assert kinds >= {
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.ADD,
        Kind.PULL,
        Kind.COMMIT,
        Kind.SEND,
        Kind.DEAD_LETTER,
    }
    assert {row.broker_epoch for row in seen.rows() if row.broker} == {1}
    assert {"LSE-4", "CMT-4", "ORD-9"} <= set(seen.clauses("upheld")), seen.text
    assert {"LSE-2", "ORD-2", "ORD-13", "CMT-1"} <= set(seen.clauses("not_recorded"))
    assert "not recorded" in seen.text
