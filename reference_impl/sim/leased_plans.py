"""Plans for messages that are leased one by one: members come, sleep past their leases, die and leave under load.

Drawn are besides: how many messages of a lane may be under lease at once, the limit of redeliveries, who fails how
often, and whose call lasts for longer than its lease.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from specs.faults import crash, pause
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Outcome

CONFIG = replace(
    Config(),
    broker_lease_ms=400,
    suspend_ms=60,
    threads=1,
    batch=1,
    delay_bound_ms=500,
    schedule_slack_ms=200,
)
MEMBERS = 3
MESSAGES = 60
KEYS = 6
EVERY_MS = 60
NO_LIMIT = -1
_GOES = ("stop", crash.VERB, pause.VERB, pause.VERB)


def drawn_plan(draw: Random, seed: int, config: Config = CONFIG, prefix: str = "") -> Plan:
    """prefix: what the names of the topic, the group and everybody begin with."""
    config = replace(
        config,
        threads=draw.choice((1, 1, 3)),
        max_reconsume_times=draw.choice((NO_LIMIT, 2)),
    )
    topic, group, shop = f"{prefix}orders", f"{prefix}billing", f"{prefix}shop"
    members = [f"{prefix}c{number}" for number in range(1, MEMBERS + 1)]
    actions = [Action(0, "start", {"client": name}) for name in (shop, *members[:2])]
    last_ms = MESSAGES * EVERY_MS
    for number in range(MESSAGES):
        key = f"k{draw.randrange(KEYS)}"
        send = {"client": shop, "topic": topic, "key": key, "count": 1}
        actions.append(Action(100 + number * EVERY_MS, "send", send))
    for at_ms in range(300, last_ms, 2 * config.broker_lease_ms):
        actions += _change(draw, at_ms, members, config)
    actions.sort(key=lambda action: action.at_ms)
    return Plan(
        seed=seed,
        topology=Topology(topics=(TopicPlan(topic, 2),), groups=(group,)),
        config=config,
        clients=(
            ClientPlan(shop, "producer"),
            *(ClientPlan(each, "consumer", group, (topic,)) for each in members),
        ),
        actions=tuple(actions),
        listener=tuple(_rules(draw, config)),
        until_ms=max(last_ms, actions[-1].at_ms),
        settle_ms=20_000,
    )


def _change(draw: Random, at_ms: int, members: list[str], config: Config) -> list[Action]:
    """Somebody goes, and is there again later."""
    name, how = draw.choice(members), draw.choice(_GOES)
    away_ms = draw.choice((config.broker_lease_ms // 2, config.broker_lease_ms * 3 // 2))
    if how == pause.VERB:
        return [
            Action(at_ms, how, {"node": name}),
            Action(at_ms + away_ms, pause.HEALED_BY, {"node": name}),
        ]
    again = Action(at_ms + away_ms, "restart", {"client": name})
    return [Action(at_ms, how, {"client": name}), again]


def _rules(draw: Random, config: Config) -> list[ListenerRule]:
    """Most calls are short and end well."""
    rules = [ListenerRule(duration_ms=5)]
    for number in range(1, MESSAGES + 1):
        match draw.randrange(10):
            case 0:
                most = draw.choice((1, 2, 4))
                rules.append(
                    ListenerRule(
                        Outcome.SUSPEND,
                        draw.choice((-1, 0, 150)),
                        3,
                        number=number,
                        delivery_max=most,
                    )
                )
            case 1:
                slow_ms = draw.choice(
                    (config.broker_lease_ms * 3 // 4, config.broker_lease_ms + 100)
                )
                rules.append(ListenerRule(duration_ms=slow_ms, number=number, delivery_max=1))
            case _:
                pass
    return rules
