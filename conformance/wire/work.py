"""Our own clients at work on a wire target, in every way that a profile speaks of: the plans of a run's rounds.

A round is about half a minute in which producers send all that there is to send (keyed, unkeyed, in batches, half,
delayed), consumers come, go and die, some messages are suspended, some thrown at, some given up, and an operator
resets a group's offsets; where the broker can be killed, it is, in the middle of it. The first round has one message
per call, threads for all and commits by itself, the second takes several, has one thread and, where listeners can,
commits by hand: no round can put everything at stake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from specs.faults import broker_crash, crash, disk_full
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.profiles import Profile
from specs.vocabulary import Outcome

ROUNDS = 2
QUEUES = 12
KEYS = 12
TURN_MS = 250
DEAD_MS = 1_200
DIES_MS = ((16_000, 24_500), (26_000, 35_000))
"""When the broker is killed: while members come and go in good order, once while a dead one's lanes are waited for.

Not before one member (in the second round two) has died and its lanes have been taken over: where the broker was killed
nothing says by when they have to be."""
BACKLOG_MS = 3_000
"""In the second round the first consumer comes so late that its lanes wait in line for its only thread."""
FULL_MS = 700
LEASES: Mapping[str, Any] = {
    "broker_lease_ms": 3_000,
    "client_lease_ms": 1_700,
    "lock_interval_ms": 500,
    "rebalance_ms": 500,
}
"""A client's own limit is longer than the slack of a timer: else no clause could say that a lane had a fresh lease."""
MOVED = "moved"
"""A group without members, whose offsets an operator resets while a raw client commits."""
_FAILS = (Outcome.SUSPEND, Outcome.NULL, Outcome.THREW)
_WAITS_MS = (-1, 1, 10, 40, 150)
_STATES = ("commit", "rollback", "unknown")


@dataclass(frozen=True, slots=True)
class Way:
    """How groups consume, and which of the known answers the broker gives: what of a run a profile decides."""

    mode: str
    message_model: str
    dialect: str

    @property
    def is_orderly(self) -> bool:
        return self.mode == "orderly" and not self.is_broadcast

    @property
    def is_broadcast(self) -> bool:
        return self.message_model == "broadcasting"

    def __str__(self) -> str:
        how = "broadcasting" if self.is_broadcast else self.mode.replace("_", "-")
        return how if self.dialect == "5.x" else f"{how}, {self.dialect}"


def way_of(profile: Profile) -> Way:
    """Of the profiles that leave open how the broker answers, as 5.x does."""
    is_old = profile.wire.get("dead_letter_waits_for_delay_level") is True
    return Way(profile.mode, profile.message_model, "4.9" if is_old else "5.x")


def configured(config: Config, profile: Profile, *, our_broker: bool) -> Config:
    """The configuration in the profile's way. our_broker: it answers as we tell it."""
    way = way_of(profile)
    return replace(
        config,
        mode=way.mode,
        message_model=way.message_model,
        dialect=way.dialect if our_broker else config.dialect,
    )


def round_config(config: Config, number: int) -> Config:
    """The numbers of a round (from 1 on), in a run's way."""
    config = replace(config, **LEASES)
    if number % 2:
        return replace(config, batch=1, max_reconsume_times=1, threads=200)
    return replace(
        config, batch=3, max_reconsume_times=2, pull_batch=8, threads=1, continuous_ms=300
    )


def round_plan(
    config: Config,
    prefix: str,
    seed: int,
    number: int,
    broker: str,
    *,
    kills: bool,
    fills: bool = False,
) -> Plan:
    """The plan of a round. config: the round's. broker: the one that is asked; with `kills` it is killed, with `fills`
    its disk has no room for a while."""
    draw = Random(f"round {number} of {seed}")
    is_plain = bool(number % 2)
    topic, group = f"{prefix}orders", f"{prefix}billing"
    clients = (
        ClientPlan(f"{prefix}p1", "producer", topics=(topic,)),
        ClientPlan(f"{prefix}p2", "producer", topics=(topic,)),
        *(ClientPlan(f"{prefix}c{each}", "consumer", group, (topic,)) for each in (1, 2, 3)),
        *(ClientPlan(f"{prefix}e{each}", "prober") for each in (1, 2)),
    )
    last_ms = 0 if is_plain else BACKLOG_MS
    actions = [Action(0, "start", {"client": f"{prefix}{name}"}) for name in ("p1", "p2")]
    actions.append(Action(last_ms, "start", {"client": f"{prefix}c1"}))
    for after_ms, verb, name in _comings(draw, is_plain=is_plain):
        last_ms += after_ms
        actions.append(Action(last_ms, verb, {"client": f"{prefix}{name}"}))
    until_ms = last_ms + config.broker_lease_ms + 3_000
    sending_ms = until_ms - 3_000
    actions += _sends(prefix, topic, sending_ms)
    actions += _resets(prefix, topic, f"{prefix}{MOVED}", broker, sending_ms, draw)
    if fills:
        for full_ms in range(4_500, sending_ms, 4_000):
            actions.append(Action(full_ms, disk_full.VERB, {"broker": broker}))
            actions.append(Action(full_ms + FULL_MS, disk_full.HEALED_BY, {"broker": broker}))
    if kills:
        for dies_ms in DIES_MS[1 - number % 2]:
            actions.append(Action(dies_ms, broker_crash.VERB, {"broker": broker}))
            actions.append(Action(dies_ms + DEAD_MS, broker_crash.HEALED_BY, {"broker": broker}))
    actions.sort(key=lambda action: action.at_ms)
    return Plan(
        seed=seed,
        topology=Topology((broker,), (TopicPlan(topic, QUEUES),), (group, f"{prefix}{MOVED}")),
        config=config,
        clients=clients,
        actions=tuple(actions),
        listener=_rules(actions, draw, is_plain=is_plain, is_orderly=config.mode == "orderly"),
        until_ms=until_ms,
    )


def _comings(draw: Random, *, is_plain: bool) -> tuple[tuple[int, str, str], ...]:
    """Who comes and goes: after how many ms, what, who."""
    first, second, third = draw.sample(("c1", "c2", "c3"), 3)
    return (
        (1_500, "start", "c2"),
        (2_000, "start", "c3"),
        *(() if is_plain else ((2_000, crash.VERB, third), (5_500, crash.HEALED_BY, third))),
        (2_000, "stop", first),
        (2_000, crash.HEALED_BY, first),
        (2_000, crash.VERB, second),
        (5_500, crash.HEALED_BY, second),
        (2_000, "stop", third),
        (1_500, "stop", second),
        (1_500, crash.HEALED_BY, third),
        (1_000, crash.HEALED_BY, second),
        (2_000, crash.VERB, first),
        (5_500, crash.HEALED_BY, first),
    )


def _sends(prefix: str, topic: str, until_ms: int) -> list[Action]:
    """Keyed messages at every turn, of the last key now and then by the other producer; in between all other kinds."""
    actions = []
    for turn, at_ms in enumerate(range(1_000, until_ms, TURN_MS)):
        actions += [
            _send(
                at_ms,
                f"{prefix}p{2 if key == KEYS - 1 and turn % 8 > 4 else 1}",
                topic,
                key=f"k{key}",
            )
            for key in range(turn % 3, KEYS, 3)
        ]
        others = f"{prefix}p2"
        if turn % 2:
            actions.append(_send(at_ms + 60, others, topic))
        if turn % 6 == 2:
            actions.append(_send(at_ms + 90, others, topic, count=3, batch=True))
        if turn % 5 == 1:
            actions.append(_send(at_ms + 120, others, topic, delay_level=1 + turn % 2))
        if turn % 3 == 1:
            ends, checked = _STATES[turn // 3 % 3], _STATES[turn // 9 % 3]
            actions.append(
                _send(at_ms + 150, others, topic, "send_half", ends=ends, checked=checked)
            )
    return actions


def _send(at_ms: int, client: str, topic: str, do: str = "send", **more: Any) -> Action:
    return Action(at_ms, do, {"client": client, "topic": topic, "count": 1, **more})


def _resets(
    prefix: str, topic: str, group: str, broker: str, until_ms: int, draw: Random
) -> list[Action]:
    """A raw client commits, an operator resets, the first commits again, and somebody looks."""
    actions = []
    for at_ms in range(2_000, until_ms, 1_200):
        queue, offset = draw.randrange(QUEUES), draw.choice((0, 1, 3))
        lane: Mapping[str, Any] = {"group": group, "topic": topic, "broker": broker}
        one = {**lane, "queue": queue}
        asks = {"client": f"{prefix}e2", **lane, "queues": [queue]}
        actions += [
            Action(at_ms, "probe_commit", {"client": f"{prefix}e1", **one, "offset": 7}),
            Action(at_ms + 100, "reset", {"client": f"{prefix}e2", **one, "offset": offset}),
            Action(at_ms + 200, "probe_offset", asks),
            Action(at_ms + 300, "probe_commit", {"client": f"{prefix}e1", **one, "offset": 8}),
            Action(at_ms + 400, "probe_offset", asks),
        ]
    return actions


def _rules(
    actions: list[Action], draw: Random, *, is_plain: bool, is_orderly: bool
) -> tuple[ListenerRule, ...]:
    """How the calls end: most well, some once or twice badly, some always; committed by hand in a round that is not
    plain, if the consumers are orderly."""
    manual = is_orderly and not is_plain
    done, duration_ms = (Outcome.COMMIT if manual else Outcome.SUCCESS), (2 if is_plain else 15)
    rules = [ListenerRule(done, duration_ms=duration_ms, manual=manual)]
    number = 0
    for action in actions:
        if action.do not in ("send", "send_half"):
            continue
        for _ in range(action.args["count"]):
            number += 1
            place = number % 16
            how, wait_ms = draw.choice(_FAILS), draw.choice(_WAITS_MS)
            if place in (0, 7):
                rules.append(ListenerRule(how, wait_ms, 1, manual, number=number))
            elif place == 5:
                tries = 1 if is_plain else draw.choice((1, 2))
                rules.append(
                    ListenerRule(how, wait_ms, 1, manual, number=number, delivery_max=tries)
                )
            elif place == 8 and manual:  # taken, and committed by a later call
                rules.append(
                    ListenerRule(Outcome.SUCCESS, duration_ms=1, manual=True, number=number)
                )
            elif place == 10 and manual:
                rules.append(
                    ListenerRule(Outcome.ROLLBACK, wait_ms, 1, True, number=number, delivery_max=1)
                )
            elif (
                place == 3 and number % 3 == 0
            ):  # rests for so long that somebody may come or go meanwhile
                rest_ms = draw.choice((500, 1_300))
                rules.append(
                    ListenerRule(Outcome.SUSPEND, rest_ms, 1, manual, number=number, delivery_max=1)
                )
            elif place == 13:  # and works for so long
                rules.append(ListenerRule(done, duration_ms=300, manual=manual, number=number))
    return tuple(rules)
