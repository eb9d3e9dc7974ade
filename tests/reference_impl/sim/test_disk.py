"""What a broker's disk does to a run: full for a while, or without its oldest messages."""

from __future__ import annotations

from reference_impl.core.broker.broker import Broker
from reference_impl.sim.cluster import Cluster
from reference_impl.sim.simulate import runinfo_of, simulate
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology
from specs.verdicts.examine import examine
from specs.vocabulary import Kind, Outcome


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
    full, room = Action(200, "disk_full", {"broker": "b0"}), Action(400, "disk_room", {"broker": "b0"})
    rows = simulate(plan_of(send(100), full, send(300), room, send(500)))[1]
    sends = [(row.outcome, row.code) for row in rows if row.kind is Kind.SEND]
    assert sends == [(Outcome.OK, 0), (Outcome.REFUSED, 14), (Outcome.OK, 0)]
    fault = next(row for row in rows if row.kind is Kind.FAULT)
    assert (fault.detail, fault.outcome, fault.started_us, fault.ended_us) == ("disk_full b0", "ok", 200_000, 400_000)


def test_a_full_disk_that_refused_nothing_had_no_effect_and_the_end_makes_room() -> None:
    rows = simulate(plan_of(Action(200, "disk_full", {"broker": "b0"})))[1]
    assert next(row for row in rows if row.kind is Kind.FAULT).outcome is Outcome.REFUSED


def test_a_queue_without_its_oldest_messages_was_not_read_whole_and_nothing_is_called_lost() -> None:
    """Retention takes them on purpose."""
    plan = plan_of(send(100), send(200), send(300))
    cluster = Cluster(plan)
    for action in plan.actions:
        cluster.run_until(action.at_ms)
        cluster.perform(action.do, action.args)
    cluster.run_until(plan.until_ms)
    core = cluster.node("b0").core
    assert isinstance(core, Broker)
    core.store.trim("orders", 0, 2)
    cluster.drain()
    rows = cluster.rows()
    reads = [row for row in rows if row.kind is Kind.READ and row.topic == "orders"]
    assert [(row.queue_offset, row.outcome) for row in reads] == [(None, Outcome.REFUSED), (2, Outcome.OK)]
    assert examine(rows, runinfo_of(plan, None)).refuted() == ()
