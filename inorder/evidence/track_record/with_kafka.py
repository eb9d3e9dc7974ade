"""Sends in flight together over a link that loses their answers: the producer's setting decides what the log holds.

A producer sends without waiting, a few messages of each key at a time. Then everything on the link takes long, and in
the midst of that the link is cut: what was under way is lost, requests and answers, and the producer tries again. This
happens twice, while messages flow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from conformance.targets.base import Target
from inorder.evidence.track_record.planned import ByPlan, names_of
from specs.faults import broker_crash, cut, delay
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.plan.step import EVERYBODY, Step

BROKER = "b0"
KEYS = 4
TURNS = 120
FIRST_SEND_MS = 3_000
EVERY_MS = 60
SLOW_MS = 150
"""Each way: a cut finds requests and answers under way."""
SLOW_FOR_MS = 1_500
TIMES = 2
DOWN_FOR_MS = (100, 400)
TO_THE_END_MS = 2_000
ON_TWO_LANES = 8
"""Keys, of which the hash leads four to each lane."""
BACKLOG = 8
"""Messages of each."""
LONG_MS = 400
"""So long a call takes: longer than between two commits."""
JOINS_MS = (1_000, 1_400)
"""After the first send."""
STAYS_MS = 4_000


@dataclass(frozen=True, slots=True)
class SendsInFlight(ByPlan):
    """One consumer, one producer, one lane; the link is slow, and is cut meanwhile."""

    def plan(self, target: Target, seed: int) -> Plan:
        """What is done; of two targets that differ in a setting of the producer's alone it is the same."""
        names, draw = names_of(seed), Random(seed)
        topic, group, shop, worker = (
            f"{names}{word}" for word in ("orders", "billing", "shop", "c1")
        )
        sends = [
            Action(
                FIRST_SEND_MS + turn * EVERY_MS,
                "send",
                {"client": shop, "topic": topic, "key": f"k{key}", "count": 1},
            )
            for turn in range(TURNS)
            for key in range(KEYS)
        ]
        plan = Plan(
            seed=seed,
            topology=Topology(brokers=(BROKER,), topics=(TopicPlan(topic, 1),), groups=(group,)),
            config=replace(target.config, max_reconsume_times=-1, batch=1),
            clients=(ClientPlan(shop, "producer"), ClientPlan(worker, "consumer", group, (topic,))),
            actions=(
                Action(0, "start", {"client": shop}),
                Action(0, "start", {"client": worker}),
                *sends,
            ),
            steps=tuple(step for _ in range(TIMES) for step in _cut_while_slow(draw)),
            until_ms=sends[-1].at_ms + TO_THE_END_MS,
        )
        return target.suited(plan)


def _cut_while_slow(draw: Random) -> tuple[Step, Step]:
    """A commit and its answer take so long by then that the third call is over some answers after the first."""
    link = {"a": EVERYBODY, "b": BROKER}
    return (
        Step(
            delay.VERB,
            {**link, "ms": SLOW_MS},
            finished=draw.randint(5, 15),
            for_ms=SLOW_FOR_MS,
        ),
        Step(cut.VERB, link, finished=3, for_ms=draw.randint(*DOWN_FOR_MS), beside=True),
    )


@dataclass(frozen=True, slots=True)
class LeaderKilled(ByPlan):
    """One lane with much under way, whose leader is killed in the midst; it comes again five seconds later."""

    def plan(self, target: Target, seed: int) -> Plan:
        """What is done; of two targets that differ in a setting alone it is the same."""
        names = names_of(seed)
        topic, group, shop, worker = (
            f"{names}{word}" for word in ("orders", "billing", "shop", "c1")
        )
        sends = [
            Action(
                FIRST_SEND_MS + turn * 20,
                "send",
                {"client": shop, "topic": topic, "key": f"k{key}", "count": 2},
            )
            for turn in range(300)
            for key in range(KEYS)
        ]
        broker = {"broker": BROKER}
        crash = Action(5_500, broker_crash.VERB, broker)
        back = Action(10_500, broker_crash.HEALED_BY, broker)
        started = [Action(0, "start", {"client": client}) for client in (shop, worker)]
        actions = sorted([*started, *sends, crash, back], key=lambda action: action.at_ms)
        plan = Plan(
            seed=seed,
            topology=Topology(brokers=(BROKER,), topics=(TopicPlan(topic, 1),), groups=(group,)),
            config=replace(target.config, max_reconsume_times=-1, batch=100),
            clients=(ClientPlan(shop, "producer"), ClientPlan(worker, "consumer", group, (topic,))),
            actions=tuple(actions),
            until_ms=11_000,
        )
        return target.suited(plan)


@dataclass(frozen=True, slots=True)
class ComesAndGoes(ByPlan):
    """Two lanes with much to do, whose work takes long; a second consumer joins while calls run, and leaves again."""

    def plan(self, target: Target, seed: int) -> Plan:
        """What is done; of two targets that differ in a client's version alone it is the same."""
        names, draw = names_of(seed), Random(seed)
        topic, group, shop, first, second = (
            f"{names}{word}" for word in ("orders", "billing", "shop", "c1", "c2")
        )
        joins_ms = FIRST_SEND_MS + draw.randint(*JOINS_MS)
        leaves_ms = joins_ms + STAYS_MS
        send = {"client": shop, "topic": topic, "count": BACKLOG}
        return Plan(
            seed=seed,
            topology=Topology(brokers=(BROKER,), topics=(TopicPlan(topic, 2),), groups=(group,)),
            config=replace(target.config, max_reconsume_times=-1, batch=1),
            clients=(
                ClientPlan(shop, "producer"),
                *(ClientPlan(each, "consumer", group, (topic,)) for each in (first, second)),
            ),
            actions=(
                Action(0, "start", {"client": shop}),
                Action(0, "start", {"client": first}),
                *(
                    Action(FIRST_SEND_MS, "send", {**send, "key": f"k{key}"})
                    for key in range(ON_TWO_LANES)
                ),
                Action(joins_ms, "start", {"client": second}),
                Action(leaves_ms, "stop", {"client": second}),
            ),
            listener=(ListenerRule(duration_ms=LONG_MS),),
            until_ms=leaves_ms + TO_THE_END_MS,
        )
