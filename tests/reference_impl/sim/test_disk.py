"""What a broker's disk does to a run: full for a while, or without its oldest messages."""

from __future__ import annotations

from dataclasses import replace

from reference_impl.core.broker.broker import Broker
from reference_impl.sim.cluster import Cluster
from reference_impl.sim.simulate import runinfo_of, simulate
from specs.history.row import Row
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology
from specs.verdicts.examine import examine
from specs.vocabulary import Kind, Outcome, Queue


def plan_of(*actions: Action) -> Plan:
    return Plan(
        topology=Topology(("b0",), (TopicPlan("orders", 1),), ("billing",)),
        clients=(ClientPlan("p", "producer", topics=("orders",)),),
        actions=(Action(0, "start", {"client": "p"}), *actions),
        until_ms=1_000,
        settle_ms=1_000,
    )


def send(at_ms: int) -> Action:
    return Action(at_ms, "send", {"client": "p", "topic": "orders", "key": "k", "count": 1})


def test_a_full_disk_refuses_sends_until_there_is_room() -> None:
    full, room = (
        Action(200, "disk_full", {"broker": "b0"}),
        Action(400, "disk_room", {"broker": "b0"}),
    )
    rows = simulate(plan_of(send(100), full, send(300), room, send(500)))[1]
    sends = [(row.outcome, row.code) for row in rows if row.kind is Kind.SEND]
    assert sends == [(Outcome.OK, 0), (Outcome.REFUSED, 14), (Outcome.OK, 0)]
    fault = next(row for row in rows if row.kind is Kind.FAULT)
    assert (fault.detail, fault.outcome, fault.started_us, fault.ended_us) == (
        "disk_full b0",
        "ok",
        200_000,
        400_000,
    )


def test_a_full_disk_that_refused_nothing_had_no_effect_and_the_end_makes_room() -> None:
    rows = simulate(plan_of(Action(200, "disk_full", {"broker": "b0"})))[1]
    assert next(row for row in rows if row.kind is Kind.FAULT).outcome is Outcome.REFUSED


def drained(*, announced: bool) -> tuple[list[Row], Plan]:
    """Three messages are sent, the first two go, and the queue is read."""
    plan = plan_of(send(100), send(200), send(300))
    cluster = Cluster(plan)
    for action in plan.actions:
        cluster.run_until(action.at_ms)
        cluster.perform(action.do, action.args)
    cluster.run_until(plan.until_ms)
    if announced:
        cluster.forget_below(Queue("orders", "b0", 0), 2)
    else:
        core = cluster.node("b0").core
        assert isinstance(core, Broker)
        core.store.trim("orders", 0, 2)
    cluster.drain()
    return cluster.rows(), plan


def test_what_a_broker_says_that_it_removed_is_not_called_lost() -> None:
    """The queue is read from its new beginning, and that reading counts."""
    rows, plan = drained(announced=True)
    reads = [row for row in rows if row.kind is Kind.READ and row.topic == "orders"]
    assert [(row.queue_offset, row.outcome) for row in reads] == [
        (None, Outcome.OK),
        (2, Outcome.OK),
    ]
    assert examine(rows, runinfo_of(plan, None)).refuted() == ()


def test_what_is_removed_without_a_word_is_lost() -> None:
    rows, plan = drained(announced=False)
    assert examine(rows, runinfo_of(plan, None)).refuted() == ("SND-1",)


def test_a_plan_says_how_long_brokers_keep_messages() -> None:
    """What is older goes while the run lasts, and nothing is called lost."""
    plan = replace(
        plan_of(*[send(at_ms) for at_ms in range(100, 900, 100)]), config=Config(keep_ms=400)
    )
    rows = simulate(plan)[1]
    trims = [row.value for row in rows if row.kind is Kind.TRIM]
    # The last message stays, whatever its age.
    assert trims == sorted(trims)
    assert trims[-1] == 7
    assert examine(rows, runinfo_of(plan, None)).refuted() == ()
