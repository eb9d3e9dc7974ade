"""Plans for driven clients: what the driver can do, drawn from a stream of choices.

The shape is that of every run on sockets (`conformance.wire.runner`): consumers join, leave in good order, are killed
and come back while keyed messages flow; some messages are suspended once, some until they are given up. Beyond it are
drawn: how many consumers, who comes and goes when, batch size, limit of reconsume times, suspend values (at and
beyond their bounds), how a listener call fails, and whether the listener commits by itself.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from conformance.wire.runner import KEYS, POISON_EVERY, QUEUES, SHORT_LEASES
from specs.faults import crash, pause
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Outcome

DRIVEN = replace(
    SHORT_LEASES,
    broker_lease_ms=3_000,
    client_lease_ms=1_700,
    lock_interval_ms=500,
    rebalance_ms=1_000,
)
"""Longer than for our own clients: a Java process takes seconds to start, and its timers are those of a busy host."""

FAST = replace(
    SHORT_LEASES, broker_lease_ms=300, client_lease_ms=150, lock_interval_ms=50, rebalance_ms=100
)
"""For clients that start at once and find each other at once."""

STEADY = replace(
    DRIVEN, broker_lease_ms=1_500, client_lease_ms=800, lock_interval_ms=250, rebalance_ms=500
)
"""For processes that start in less than a second."""

CHANGES = 4
"""How many times a consumer comes or goes after the first one has started."""
LEAST_GAP_MS = 300
FIRST_SEND_MS = 1_000
NO_LIMIT = -1
JUST_BEFORE_MS = 2
FAILS_AT_MOST = 3
"""How often a message fails where nobody can give it up."""
ENDS = ("stop", crash.VERB)
"""How a consumer goes."""
MESSAGES = 240
SLEEPERS_CALL_MS = 80
"""So long each call of a consumer takes that is to stand still in the midst of one."""
BACKLOG = 4
"""Messages of each key that are sent before it does."""
BACKLOG_MS = 700
"""So long before: everybody is at work on them."""
_FAILS = (Outcome.SUSPEND, Outcome.NULL, Outcome.THREW)
_WAITS_MS = (-1, 1, 10, 40, 150)
"""What a listener may ask for: the consumer's default, below the least, the least, and more."""


def drawn_plan(
    base: Config,
    prefix: str,
    seed: int,
    draw: Random,
    *,
    plain: bool,
    changes: int = CHANGES,
    messages: int = MESSAGES,
    ends: tuple[str, ...] = ENDS,
    poison: bool = True,
    sleeps: bool = False,
) -> Plan:
    """A plan of about half a minute, `changes` times the gap and then the end of the lease.

    plain: one message per call and no manual commits, where most clauses apply. ends: how a consumer may go.
    poison: some messages never succeed, so that they are given up. sleeps: at last a consumer stands still in the midst
    of a call, for longer than the others wait for it.

    The first change is always another consumer, so that lanes change hands; at least one consumer is left at work.
    """
    topic, group, shop = f"{prefix}orders", f"{prefix}billing", f"{prefix}shop"
    consumers = [f"{prefix}c{number}" for number in range(1, draw.choice((2, 3)) + 1)]
    config = replace(
        base,
        batch=1 if plain else draw.choice((2, 3, 4)),
        max_reconsume_times=draw.choice((0, 1, 2)),
        suspend_ms=draw.choice((20, 60, 120)),
        pull_batch=draw.choice((4, 32)),
    )
    if not poison:
        config = replace(config, max_reconsume_times=NO_LIMIT)
    gap_ms = gap_of(base)
    actions = [Action(0, "start", {"client": shop}), Action(0, "start", {"client": consumers[0]})]
    actions += _changes(consumers, draw, changes, gap_ms, ends)
    last_ms = actions[-1].at_ms
    until_ms = last_ms + config.broker_lease_ms + gap_ms
    turns = max(1, messages // KEYS) * 2
    pace_ms = max(1, (until_ms - gap_ms - FIRST_SEND_MS) // turns)
    moments = _moments([FIRST_SEND_MS + turn * pace_ms for turn in range(turns)], actions)
    actions += [
        Action(
            moments[turn],
            "send",
            {"client": shop, "topic": topic, "key": f"k{key}", "count": 1},
        )
        for turn in range(turns)
        for key in _keys_of(turn)
    ]
    rules = _rules(messages, draw, plain=plain, poison=poison)
    if sleeps and len(consumers) > 1:
        sleeper, asleep = _sleep(consumers, actions, draw, until_ms, config)
        backlog = {"client": shop, "topic": topic, "count": BACKLOG}
        full_ms = until_ms + gap_ms - BACKLOG_MS
        actions += [
            *asleep,
            *(Action(full_ms, "send", {**backlog, "key": f"k{key}"}) for key in range(KEYS)),
        ]
        usual = [rule for rule in rules[:1] if rule.number is None]
        slow = replace(
            usual[0] if usual else ListenerRule(), duration_ms=SLEEPERS_CALL_MS, client=sleeper
        )
        rules = (*usual, slow, *rules[len(usual) :])
    actions.sort(key=lambda action: action.at_ms)
    return Plan(
        seed=seed,
        topology=Topology(topics=(TopicPlan(topic, QUEUES),), groups=(group,)),
        config=config,
        clients=(
            ClientPlan(shop, "producer"),
            *(ClientPlan(each, "consumer", group, (topic,)) for each in consumers),
        ),
        actions=tuple(actions),
        listener=rules,
        until_ms=max(until_ms, actions[-1].at_ms),
    )


def _moments(turns: list[int], changes: list[Action]) -> list[int]:
    """When is sent: something is under way whenever a consumer comes or goes."""
    moved = list(turns)
    for change in changes:
        if change.at_ms > 0:
            nearest = min(range(len(turns)), key=lambda turn: abs(turns[turn] - change.at_ms))
            moved[nearest] = change.at_ms - JUST_BEFORE_MS
    return moved


def _keys_of(turn: int) -> list[int]:
    """Every other key, beginning with another one each time: what fails has successors now and then."""
    keys = list(range(turn % 2, KEYS, 2))
    first = turn // 2 % len(keys)
    return keys[first:] + keys[:first]


def gap_of(config: Config) -> int:
    """From one change to the next, in ms: a lease has ended by then, and a new owner is at work."""
    return max(LEAST_GAP_MS, config.broker_lease_ms + 2 * config.rebalance_ms)


def _sleep(
    consumers: list[str], actions: list[Action], draw: Random, at_ms: int, config: Config
) -> tuple[str, list[Action]]:
    """Who stands still, and what is done: all others are at work meanwhile, and what it had to do is sent before."""
    at_work: set[str] = set()
    for action in sorted(actions, key=lambda each: each.at_ms):
        if action.args.get("client") in consumers:
            change = at_work.add if action.do in ("start", "restart") else at_work.discard
            change(action.args["client"])
    sleeper = draw.choice(sorted(at_work))
    back = [Action(at_ms, "restart", {"client": each}) for each in consumers if each not in at_work]
    falls_ms = at_ms + gap_of(config)
    wakes_ms = falls_ms + 2 * config.broker_lease_ms + gap_of(config)
    node = {"node": sleeper}
    asleep = [Action(falls_ms, pause.VERB, node), Action(wakes_ms, pause.HEALED_BY, node)]
    return sleeper, [*back, *asleep]


def _changes(
    consumers: list[str], draw: Random, changes: int, gap_ms: int, ends: tuple[str, ...]
) -> list[Action]:
    """Who comes and goes: all join once, then each change takes one away or brings one back."""
    at_work, waiting, gone = consumers[:1], consumers[1:], list[str]()
    actions: list[Action] = []
    for number in range(changes):
        at_ms = (number + 1) * gap_ms
        leaves = len(at_work) > 1 and (not (waiting or gone) or draw.random() < 0.6)
        if leaves:
            client = draw.choice(at_work)
            at_work.remove(client)
            gone.append(client)
            actions.append(Action(at_ms, draw.choice(ends), {"client": client}))
        else:
            client = waiting.pop(0) if waiting else gone.pop(0)
            at_work.append(client)
            actions.append(Action(at_ms, "restart", {"client": client}))
    return actions


def _rules(messages: int, draw: Random, *, plain: bool, poison: bool) -> tuple[ListenerRule, ...]:
    """How calls end: most well, some messages once or twice badly, some always."""
    manual = not plain and draw.random() < 0.5
    rules = [ListenerRule(Outcome.COMMIT, manual=True)] if manual else []
    for number in range(1, messages + 1):
        place = number % POISON_EVERY
        how, wait_ms = draw.choice(_FAILS), draw.choice(_WAITS_MS)
        if place == 0:
            most = None if poison else FAILS_AT_MOST
            rules.append(ListenerRule(how, wait_ms, 1, manual, number=number, delivery_max=most))
        elif place == 5:
            rules.append(
                ListenerRule(
                    how, wait_ms, 1, manual, number=number, delivery_max=draw.choice((1, 2))
                )
            )
        elif place == 8 and manual:  # taken, and committed by a later call
            rules.append(ListenerRule(Outcome.SUCCESS, duration_ms=1, manual=True, number=number))
        elif place == 10 and manual:
            rules.append(
                ListenerRule(Outcome.ROLLBACK, wait_ms, 1, True, number=number, delivery_max=1)
            )
        elif place == 10:  # in auto mode a rollback finishes the message
            rules.append(ListenerRule(Outcome.ROLLBACK, duration_ms=1, number=number))
    return tuple(rules)
