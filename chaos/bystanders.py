"""A plan whose faults befall somebody else: the same moments, the same numbers, and nobody at work notices.

Beside each consumer stands a bystander: a producer that sends nothing. What befalls a client, or its link, befalls its
bystander. What befalls a broker or the name server befalls everybody, and is left out. A bug
that is refuted all the same needs no fault, and a scenario that shows it shows nothing of what it breaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specs.plan.fault import Subject
from specs.plan.plan import Action, ClientPlan, Plan
from specs.plan.step import EVERYBODY, Step

BESIDE = "beside-"
_EVERYBODYS = (Subject.BROKER, Subject.NAME_SERVER)
LASTS_MS = 3_000
"""How long what lasts until others have somebody's lanes does: nobody takes over from a bystander."""


def befalls_bystanders(plan: Plan) -> Plan:
    """The plan with its steps' faults at the bystanders."""
    consumers = [client for client in plan.clients if client.kind == "consumer"]
    late = {step.args["client"] for step in plan.steps if step.do == "start"}
    bystanders = tuple(ClientPlan(f"{BESIDE}{client.id}", "producer") for client in consumers)
    starts = (Action(0, "start", {"client": client.id}) for client in bystanders)
    first = min(consumer.id for consumer in consumers)
    return replace(
        plan,
        clients=(*plan.clients, *bystanders),
        actions=(*starts, *plan.actions),
        steps=tuple(each for step in plan.steps for each in _moved(step, late, first)),
    )


def _moved(step: Step, late: set[str], first: str) -> Iterator[Step]:
    """late: the clients that join by a step; they never do here, so anybody's work is waited for instead of theirs."""
    fault = step.fault
    if step.of_broker or (fault is not None and fault.subject in _EVERYBODYS):
        return
    whom = first if EVERYBODY in step.args.values() else ""
    names = step.healing_args
    moved = {
        name: f"{BESIDE}{whom or value}"
        for name, value in names.items()
        if not (fault is not None and fault.subject is Subject.LINK and name == fault.nodes[-1])
    }
    yield replace(
        step,
        args={**step.args, **moved},
        client="" if step.client in late else step.client,
        at_work=step.at_work and step.client not in late,
        for_ms=LASTS_MS if step.for_ms is None else step.for_ms,
    )
