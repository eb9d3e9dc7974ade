"""A consumer that was handed several messages leaves in good order, and another one stands by."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from conformance.targets.base import Target
from inorder.evidence.track_record.planned import ByPlan, names_of
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology

MESSAGES = 20
"""More than anybody is handed at once, and than the first one gets done."""
SEND_MS = 1_000
SECOND_MS = 1_200
LEAVES_MS = (4_500, 5_500)
"""Between these: it has done some, and others lie with it."""
UNTIL_MS = 7_000


@dataclass(frozen=True, slots=True)
class HandedOver(ByPlan):
    """One lane, one key's messages, two consumers, of which the one at work stops. Nothing fails."""

    def plan(self, target: Target, seed: int) -> Plan:
        """What is done; of two targets that differ in an option alone it is the same."""
        names = names_of(seed)
        topic, group, shop, first, second = (
            f"{names}{word}" for word in ("orders", "billing", "shop", "c1", "c2")
        )
        send = {"client": shop, "topic": topic, "key": "k", "count": MESSAGES}
        plan = Plan(
            seed=seed,
            topology=Topology(topics=(TopicPlan(topic, 1),), groups=(group,)),
            config=target.config,
            clients=(
                ClientPlan(shop, "producer"),
                ClientPlan(first, "consumer", group, (topic,)),
                ClientPlan(second, "consumer", group, (topic,)),
            ),
            actions=(
                Action(0, "start", {"client": shop}),
                Action(0, "start", {"client": first}),
                Action(SEND_MS, "send", send),
                Action(SECOND_MS, "start", {"client": second}),
                Action(Random(seed).randrange(*LEAVES_MS), "stop", {"client": first}),
            ),
            until_ms=UNTIL_MS,
        )
        return target.suited(plan)
