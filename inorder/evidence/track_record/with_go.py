"""Bugs of RocketMQ's Go client: a small plan for each, done by drivers of the Go client and of the Java client.

A plan says which messages fail and how, and nothing else; it is made from the seed alone, with names that no clock is
part of, so that both sides of an entry do the same. It uses the driver protocol only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from conformance.targets.base import Target
from inorder.evidence.track_record.planned import ByPlan, names_of
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Outcome

MESSAGES = 12
"""And one that comes later: by then what was finished before is stored."""
LIMIT = 2
SUSPEND_MS = 500
FIRST_SEND_MS = 4_000
"""By then a consumer has its lane."""
TO_THE_END_MS = 3_000
ONE_MORE_MS = 5_000
PERSIST_FIRST_MS = 10_000
"""Neither client reports an offset by itself before that; it has no setting."""
LEAVES_MS = FIRST_SEND_MS + 3_000
"""By then all messages were worked on."""

Rules = Callable[[int], tuple[ListenerRule, ...]]
"""The number of the message that fails → how calls end. What has no rule ends well."""


def never_well(number: int) -> tuple[ListenerRule, ...]:
    """A message is suspended each time, for as long as the call asks, until it is given up."""
    return (ListenerRule(Outcome.SUSPEND, SUSPEND_MS, number=number),)


def suspended_once(number: int) -> tuple[ListenerRule, ...]:
    """A message is suspended once, for as long as the consumer was told."""
    return (ListenerRule(Outcome.SUSPEND, number=number, delivery_max=1),)


def suspended_by_hand(number: int) -> tuple[ListenerRule, ...]:
    """The listener commits by itself: each message but one, which it suspends once."""
    return (
        ListenerRule(Outcome.COMMIT, manual=True),
        ListenerRule(Outcome.SUSPEND, manual=True, number=number, delivery_max=1),
    )


def returned_nothing(number: int) -> tuple[ListenerRule, ...]:
    """A listener returns no result once; in Go it asks for a retry later."""
    return (ListenerRule(Outcome.NULL, number=number, delivery_max=1),)


def threw(number: int) -> tuple[ListenerRule, ...]:
    """A listener throws once; in Go it returns an error."""
    return (ListenerRule(Outcome.THREW, number=number, delivery_max=1),)


def committed(number: int) -> tuple[ListenerRule, ...]:
    """A listener whose commits are automatic says COMMIT of a message and of all that follow."""
    return tuple(ListenerRule(Outcome.COMMIT, number=each) for each in range(number, MESSAGES + 1))


def all_well(_number: int) -> tuple[ListenerRule, ...]:
    """Nothing fails."""
    return ()


@dataclass(frozen=True, slots=True)
class SmallPlan(ByPlan):
    """A small plan as a trial: one lane, one consumer, one key's messages, of which one fails.

    leaves: a second consumer stands by, and the one that has the lane leaves in good order. one_more_ms: how long after
    the others the last message is sent.
    """

    rules: Rules
    leaves: bool = False
    one_more_ms: int = ONE_MORE_MS

    def plan(self, target: Target, seed: int) -> Plan:
        """What is done; of two targets that differ in a client alone it is the same."""
        names, draw = names_of(seed), Random(seed)
        topic, group, shop, worker = (
            f"{names}{word}" for word in ("orders", "billing", "shop", "c1")
        )
        # In the midst: the first sends of a client that has just started may come to nothing on a busy host.
        number = draw.randrange(MESSAGES // 2, MESSAGES - 1)
        workers = (worker, f"{names}c2") if self.leaves else (worker,)
        send = {"client": shop, "topic": topic, "key": "k", "count": MESSAGES}
        stops = (Action(LEAVES_MS, "stop", {"client": worker}),) if self.leaves else ()
        return Plan(
            seed=seed,
            topology=Topology(topics=(TopicPlan(topic, 1),), groups=(group,)),
            config=replace(
                target.config,
                max_reconsume_times=LIMIT,
                suspend_ms=SUSPEND_MS,
                batch=1,
                persist_first_ms=PERSIST_FIRST_MS,
            ),
            clients=(
                ClientPlan(shop, "producer"),
                *(ClientPlan(each, "consumer", group, (topic,)) for each in workers),
            ),
            actions=(
                Action(0, "start", {"client": shop}),
                *(Action(0, "start", {"client": each}) for each in workers),
                Action(FIRST_SEND_MS, "send", send),
                *stops,
                Action(FIRST_SEND_MS + self.one_more_ms, "send", {**send, "count": 1}),
            ),
            listener=self.rules(number),
            until_ms=FIRST_SEND_MS + self.one_more_ms + TO_THE_END_MS,
        )
