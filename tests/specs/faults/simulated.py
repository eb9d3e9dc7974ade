"""A small simulated run for faults: two consumers at work, one that never comes, and what a fault did there."""

from __future__ import annotations

from typing import Any

from reference_impl.sim.simulate import simulate
from specs.faults import FAULTS, slow_disk
from specs.history.row import Row
from specs.plan.config import IN_MEMORY, IN_SYNC, Config
from specs.plan.fault import Subject
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Kind

AT_MS = 3_005
IDLE = "c3"
"""A consumer that never starts: nothing is under way to it or from it."""


def run_with(verb: str, lasts_ms: int, **args: Any) -> tuple[list[Row], Row | None]:
    """The history of a run with that fault, and the fault's row."""
    fault = FAULTS[verb]
    late = fault.subject is Subject.NAME_SERVER
    flush = IN_SYNC if verb == slow_disk.VERB else IN_MEMORY
    actions = [Action(0, "start", {"client": name}) for name in ("p1", "c1", "c2")]
    for at_ms in range(100, 9_000, 40):
        send = {"client": "p1", "topic": "orders", "key": f"k{at_ms // 40 % 5}", "count": 1}
        actions.append(Action(at_ms, "send", send))
    actions.append(Action(AT_MS, verb, args))
    if late:  # who is at work already need not notice
        actions.append(Action(AT_MS + 500, "start", {"client": IDLE}))
    if fault.healed_by is not None:
        nodes = {name: args[name] for name in fault.nodes}
        actions.append(Action(AT_MS + lasts_ms, fault.healed_by, nodes))
    consumers = tuple(
        ClientPlan(name, "consumer", "billing", ("orders",)) for name in ("c1", "c2", IDLE)
    )
    plan = Plan(
        topology=Topology(topics=(TopicPlan("orders", 4),), groups=("billing",)),
        config=Config(
            broker_lease_ms=3_000,
            client_lease_ms=1_500,
            lock_interval_ms=300,
            rebalance_ms=1_000,
            persist_ms=1_000,
            persist_first_ms=1_000,
            flush=flush,
        ),
        clients=(ClientPlan("p1", "producer"), *consumers),
        actions=tuple(sorted(actions, key=lambda action: action.at_ms)),
        listener=(ListenerRule(duration_ms=25),),
        until_ms=60_000 if late else 9_500,
    )
    _, rows = simulate(plan)
    return rows, next((row for row in rows if row.kind is Kind.FAULT), None)
