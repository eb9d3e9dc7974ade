"""Plan v2: what a run is to do, as data: topology, numbers, clients, actions in time, listener decisions, seed.

A case and a scenario compile to a plan, a machine's run prints one, a driver gets one, replay and shrink work on
one. A plan decides nothing by itself: what an action does to a system is its target's affair. An action that
does not fit the moment (a restart of what runs, a send of a client that never started) does nothing, so that a
plan with an action taken out is still a plan.

Order in time: actions happen at `at_ms`, in the order of the list where that is equal, each after everything
else that was due by then. At `until_ms` the faults are healed and what died is started again; then the system
has up to `settle_ms` to come to rest, and with `drain` every queue is read to its end.

Messages are numbered from 1 in the order in which the actions send them; message `n` has the id `m<n>`.
Listener rules say how a delivery ends. Of the rules that match, the last in the list wins; where none does the
call ends SUCCESS after `DEFAULT_DURATION_MS`. In a call with several messages the first message that has a rule
decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from specs import faults
from specs.documents import json_in
from specs.errors import UsageError
from specs.plan.ability import Ability
from specs.plan.arguments import NODE, STATE, Arguments
from specs.plan.config import Config
from specs.plan.fault import Subject
from specs.plan.rig import NAME_SERVER
from specs.plan.step import MOVES, Step
from specs.reading import (
    Told,
    an_object,
    field_schema,
    near,
    only,
    read,
    schema_of,
    told,
    value_of,
    version_of,
)
from specs.vocabulary import Outcome

PLAN_SCHEMA = "inorder/plan/v2"
"""Version 1 had no steps, and is read as it is."""
DEFAULT_DURATION_MS = 1
CONSUMER_DEFAULT = -1
CLIENT_KINDS = ("consumer", "producer", "prober")
LISTENER_OUTCOMES = (
    Outcome.SUCCESS,
    Outcome.SUSPEND,
    Outcome.COMMIT,
    Outcome.ROLLBACK,
    Outcome.NULL,
    Outcome.THREW,
)

STATES = ("commit", "rollback", "unknown")
"""How a producer's transaction ends, and what the producer answers when a broker asks about it."""
VERBS: Mapping[str, Arguments] = {
    # verb: {argument: (its type, is it required)}
    "start": {"client": (NODE, True)},
    "stop": {"client": (NODE, True)},  # in good order
    **faults.verbs(Subject.CLIENT),
    "send": {
        "client": (NODE, True),
        "topic": ("string", True),
        "key": ("string", False),
        "count": (
            "integer",
            True,
        ),  # one after the other, each acknowledged (or given up) before the next
        "batch": ("boolean", False),  # all of them in one request, without a key
        "tags": ("string", False),  # of each message
        "delay_level": (
            "integer",
            False,
        ),  # 1 is the first of the broker's table; not seen before its time
    },
    "send_half": {
        "client": (NODE, True),
        "topic": ("string", True),
        "key": ("string", False),
        "count": (
            "integer",
            True,
        ),  # each with a transaction of its own, or all in one where the system's transactions hold several
        "ends": (STATE, True),  # unknown: the broker will ask
        "checked": (STATE, True),  # what is answered when it asks
    },
    **faults.verbs(*(subject for subject in Subject if subject is not Subject.CLIENT)),
    "probe_lock": {
        "client": (NODE, True),
        "group": ("string", True),
        "topic": ("string", True),
        "broker": (NODE, True),
        "queues": ("integers", True),
    },
    "probe_unlock": {
        "client": (NODE, True),
        "group": ("string", True),
        "topic": ("string", True),
        "broker": (NODE, True),
        "queues": ("integers", True),
    },
    "probe_offset": {
        "client": (NODE, True),
        "group": ("string", True),
        "topic": ("string", True),
        "broker": (NODE, True),
        "queues": ("integers", True),
    },
    "probe_commit": {  # a raw commit, by whom the group does not know
        "client": (NODE, True),
        "group": ("string", True),
        "topic": ("string", True),
        "broker": (NODE, True),
        "queue": ("integer", True),
        "offset": ("integer", True),
    },
    "reset": {  # an operator moves the group's offset of one queue; the broker holds commits off until it is pulled
        "client": (NODE, True),
        "group": ("string", True),
        "topic": ("string", True),
        "broker": (NODE, True),
        "queue": ("integer", True),
        "offset": ("integer", True),
    },
}
"""Every action and its arguments; the one list from which the schema is made. Faults have theirs in their files."""


LONGEST_MS = 24 * 3_600_000
"""Of a plan: a simulation goes through its whole time, timer by timer."""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic with that many queues on each broker."""

    name: str
    queues: int = field(metadata=told(least=0))


@dataclass(frozen=True, slots=True)
class Topology:
    """groups: those of the run. One that no client of the plan belongs to is made when its brokers start."""

    brokers: tuple[str, ...] = field(default=("b0",), metadata=told(fewest=1))
    topics: tuple[TopicPlan, ...] = (TopicPlan("orders", 4),)
    groups: tuple[str, ...] = ("billing",)


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """kind: consumer, producer, or prober (speaks the raw protocol). topics: of a consumer's subscription."""

    id: str
    kind: str = field(metadata=told(choices=CLIENT_KINDS))
    group: str = ""
    topics: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Any, where: str) -> ClientPlan:
        """Raises UsageError, naming the place."""
        client = read(cls, data, where)
        if client.kind == "consumer" and not (client.group and client.topics):
            raise UsageError(f"{where}: a consumer needs a group and topics")
        return client


@dataclass(frozen=True, slots=True)
class Action:
    """At `at_ms` after the begin of the run, `do` with `args` (see VERBS)."""

    at_ms: int
    do: str
    args: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Any, where: str) -> Action:
        """What the verb takes is read by VERBS. Raises UsageError, naming the place."""
        source = an_object(data, where)
        only(source, ("at_ms", "do", "args"), where)
        verb, args = _verb(source, where)
        return cls(value_of(source, "at_ms", int, where, Told(least=0)), verb, args)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        return {"oneOf": [_action_schema(verb) for verb in VERBS]}


def _verb(source: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any]]:
    """What is done, and its arguments."""
    verb = value_of(source, "do", str, where)
    if verb not in VERBS:
        raise UsageError(f"{where}: unknown action {verb!r}{near(verb, VERBS)}")
    args = dict(an_object(source.get("args", {}), f"{where}, args"))
    place = f"{where}, args of {verb}"
    only(args, VERBS[verb], place)
    for name, (kind, required) in VERBS[verb].items():
        if name in args or required:
            hint, said = _argument(name, kind)
            value_of(args, name, hint, place, said)
    return verb, args


def _steps(data: Any, where: str) -> tuple[Step, ...]:
    if not isinstance(data, list | tuple):
        raise UsageError(f"{where} must be a list")
    return tuple(_step(item, f"{where}[{number}]") for number, item in enumerate(data))


def _step(data: Any, where: str) -> Step:
    verb, args = _verb(an_object(data, where), where)
    if verb not in faults.FAULTS and verb not in MOVES:
        raise UsageError(f"{where}: a step is a fault, or {' or '.join(MOVES)}, not {verb!r}")
    return replace(read(Step, data, where), args=args)


_HINTS: Mapping[str, Any] = {
    NODE: str,
    STATE: str,
    "string": str,
    "integer": int,
    "boolean": bool,
    "integers": tuple[int, ...],
}
_MAY_BE_NEGATIVE = frozenset({"ms", "delay_level"})


def _argument(name: str, kind: str) -> tuple[Any, Told]:
    """What an action's argument may be."""
    if kind == STATE:
        return str, Told(choices=STATES)
    least = 0 if kind in ("integer", "integers") and name not in _MAY_BE_NEGATIVE else None
    return _HINTS[kind], Told(least=least)


def _args_schema(verb: str) -> dict[str, Any]:
    properties = {
        name: field_schema(*_argument(name, kind)) for name, (kind, _) in VERBS[verb].items()
    }
    args = {"type": "object", "additionalProperties": False, "properties": properties}
    if required := [name for name, (_, needed) in VERBS[verb].items() if needed]:
        args["required"] = required
    return args


def _steps_schema() -> dict[str, Any]:
    return {
        "type": "array",
        "items": {"oneOf": [_step_schema(verb) for verb in (*faults.FAULTS, *MOVES)]},
    }


def _step_schema(verb: str) -> dict[str, Any]:
    found = schema_of(Step)
    said = {"do": {"const": verb}, "args": _args_schema(verb)}
    return found | {"properties": found["properties"] | said, "required": ["do", "args"]}


def _action_schema(verb: str) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "at_ms": field_schema(int, Told(least=0)),
            "do": {"const": verb},
            "args": _args_schema(verb),
        },
        "required": ["at_ms", "do", "args"],
    }


@dataclass(frozen=True, slots=True)
class ListenerRule:
    """How deliveries end that match. What is None matches everything. Times in ms.

    key: the sharding key. number: the message. client: the plan's id. delivery_min, delivery_max: how often the
    client's process has delivered the message, this time included; both inclusive. from_ms: deliveries that
    begin then or later. suspend_ms: what the listener asks for, -1 for the consumer's default. manual: it
    switches auto commit off in this call. delay_level: what a concurrent listener asks for, 0 for the broker's
    choice.
    """

    outcome: Outcome = field(
        default=Outcome.SUCCESS,
        metadata=told(choices=tuple(outcome.value for outcome in LISTENER_OUTCOMES)),
    )
    suspend_ms: int = CONSUMER_DEFAULT
    duration_ms: int = field(default=DEFAULT_DURATION_MS, metadata=told(least=0))
    manual: bool = False
    from_ms: int = field(default=0, metadata=told(least=0))
    group: str | None = None
    client: str | None = None
    topic: str | None = None
    key: str | None = None
    number: int | None = None
    delivery_min: int = field(default=1, metadata=told(least=0))
    delivery_max: int | None = None
    delay_level: int = 0


def _config(data: Any, where: str) -> Config:
    try:
        return Config.from_json(an_object(data, where))
    except UsageError as error:
        raise UsageError(f"{where}: {error}".replace(f"{where}: {where}", where)) from error


@dataclass(frozen=True, slots=True)
class Plan:
    """A run. Times in ms of the run's clock. steps: what comes beside the actions, when its moment has come."""

    seed: int = field(default=0, metadata=told(least=0))
    topology: Topology = field(default_factory=Topology)
    config: Config = field(
        default_factory=Config, metadata=told(reads=_config, schema=Config.json_schema)
    )
    clients: tuple[ClientPlan, ...] = ()
    actions: tuple[Action, ...] = ()
    listener: tuple[ListenerRule, ...] = ()
    until_ms: int = field(default=0, metadata=told(least=0, most=LONGEST_MS))
    settle_ms: int = field(default=120_000, metadata=told(least=0))
    drain: bool = True
    steps: tuple[Step, ...] = field(default=(), metadata=told(reads=_steps, schema=_steps_schema))

    def to_json(self) -> dict[str, Any]:
        """JSON of version 2. Absent and default fields of rules, clients and steps are left out."""
        return {
            "schema": PLAN_SCHEMA,
            "seed": self.seed,
            "topology": {
                "brokers": list(self.topology.brokers),
                "topics": [
                    {"name": topic.name, "queues": topic.queues} for topic in self.topology.topics
                ],
                "groups": list(self.topology.groups),
            },
            "config": _without_defaults(self.config, Config()),
            "clients": [_client_json(client) for client in self.clients],
            "actions": [
                {"at_ms": a.at_ms, "do": a.do, "args": _plain(a.args)} for a in self.actions
            ],
            "listener": [_without_defaults(rule, ListenerRule()) for rule in self.listener],
            "until_ms": self.until_ms,
            "settle_ms": self.settle_ms,
            "drain": self.drain,
            **({"steps": [step.to_json() for step in self.steps]} if self.steps else {}),
        }

    @classmethod
    def from_json(cls, data: Any, where: str = "the plan") -> Plan:
        """Raises UsageError, naming the place, for another version, an unknown field or a wrong type."""
        source = an_object(data, where)
        version_of(source, PLAN_SCHEMA, where)
        plan = read(cls, source, where, besides=["schema"])
        plan.check(where)
        return plan

    def check(self, where: str = "the plan") -> None:
        """Raises UsageError where the plan contradicts itself: unknown names, time that runs backwards."""
        topics = {topic.name for topic in self.topology.topics}
        ids = [client.id for client in self.clients]
        taken = [*ids, *self.topology.brokers, NAME_SERVER]
        double = sorted({name for name in taken if taken.count(name) > 1})
        if double:
            raise UsageError(f"{where}: the name {double[0]!r} stands for two nodes")
        if not self.topology.brokers:
            raise UsageError(f"{where}: a run needs at least one broker")
        for client in self.clients:
            for topic in client.topics:
                if topic not in topics:
                    raise UsageError(
                        f"{where}: client {client.id} names the unknown topic {topic!r}"
                    )
        last_ms = 0
        for number, action in enumerate(self.actions):
            place = f"{where}, action {number} ({action.do})"
            if action.at_ms < last_ms:
                raise UsageError(
                    f"{place}: at_ms {action.at_ms} comes before the action ahead of it"
                )
            last_ms = action.at_ms
            for name, (kind, _) in VERBS[action.do].items():
                if kind == NODE and action.args.get(name, NAME_SERVER) not in taken:
                    unknown = action.args[name]
                    raise UsageError(f"{place}: there is no node {unknown!r}{near(unknown, taken)}")
        for number, step in enumerate(self.steps):
            for name in step.nodes():
                if name not in taken:
                    raise UsageError(
                        f"{where}, step {number} ({step.do}): there is no node {name!r}{near(name, taken)}"
                    )
        if self.until_ms < last_ms:
            raise UsageError(
                f"{where}: until_ms {self.until_ms} comes before the last action, at {last_ms}"
            )

    def befallen(self, verb: str) -> frozenset[str]:
        """The nodes that a fault of that verb is to befall, by an action or a step."""
        done = [(action.do, action.args) for action in self.actions]
        done += [(step.do, step.args) for step in self.steps]
        nodes = faults.FAULTS[verb].nodes
        return frozenset(args[name] for do, args in done if do == verb for name in nodes)

    def asks_of_brokers(self) -> frozenset[Ability]:
        """What its faults need of the brokers that they are to befall."""
        mine = frozenset(self.topology.brokers)
        return frozenset(
            fault.needs_of_broker
            for verb, fault in faults.FAULTS.items()
            if fault.subject is not Subject.LINK and self.befallen(verb) & mine
        )

    def with_actions(self, actions: Iterable[Action]) -> Plan:
        return replace(self, actions=tuple(actions))


def read_plan(path: Path) -> Plan:
    """A plan from a JSON file. Raises UsageError."""
    return Plan.from_json(json_in(path), str(path))


# ---------------------------------------------------------------- JSON


def _plain(args: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in args.items()
    }


def _without_defaults(item: Any, default: Any) -> dict[str, Any]:
    values = ((f.name, getattr(item, f.name), getattr(default, f.name)) for f in fields(item))
    return {name: value for name, value, usual in values if value != usual}


def _client_json(client: ClientPlan) -> dict[str, Any]:
    found: dict[str, Any] = {"id": client.id, "kind": client.kind}
    if client.group:
        found["group"] = client.group
    if client.topics:
        found["topics"] = list(client.topics)
    return found
