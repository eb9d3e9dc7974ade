"""Plan v1: what a run is to do, as data: topology, numbers, clients, actions in time, listener decisions, seed.

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

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from specs import faults
from specs.errors import UsageError
from specs.plan.arguments import NODE, STATE, Arguments
from specs.plan.config import Config
from specs.plan.fault import Subject
from specs.plan.step import LATEST_MS, MOVES, Step
from specs.vocabulary import Outcome

PLAN_SCHEMA = "inorder/plan/v1"
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
        "count": ("integer", True),  # each with a transaction of its own, one after the other
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

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic with that many queues on each broker."""

    name: str
    queues: int


@dataclass(frozen=True, slots=True)
class Topology:
    """groups: those of the run. One that no client of the plan belongs to is made when its brokers start."""

    brokers: tuple[str, ...] = ("b0",)
    topics: tuple[TopicPlan, ...] = (TopicPlan("orders", 4),)
    groups: tuple[str, ...] = ("billing",)


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """kind: consumer, producer, or prober (speaks the raw protocol). topics: of a consumer's subscription."""

    id: str
    kind: str
    group: str = ""
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """At `at_ms` after the begin of the run, `do` with `args` (see VERBS)."""

    at_ms: int
    do: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListenerRule:
    """How deliveries end that match. What is None matches everything. Times in ms.

    key: the sharding key. number: the message. client: the plan's id. delivery_min, delivery_max: how often the
    client's process has delivered the message, this time included; both inclusive. from_ms: deliveries that
    begin then or later. suspend_ms: what the listener asks for, -1 for the consumer's default. manual: it
    switches auto commit off in this call. delay_level: what a concurrent listener asks for, 0 for the broker's
    choice.
    """

    outcome: Outcome = Outcome.SUCCESS
    suspend_ms: int = CONSUMER_DEFAULT
    duration_ms: int = DEFAULT_DURATION_MS
    manual: bool = False
    from_ms: int = 0
    group: str | None = None
    client: str | None = None
    topic: str | None = None
    key: str | None = None
    number: int | None = None
    delivery_min: int = 1
    delivery_max: int | None = None
    delay_level: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """A run. Times in ms of the run's clock. steps: what comes beside the actions, when its moment has come."""

    seed: int = 0
    topology: Topology = field(default_factory=Topology)
    config: Config = field(default_factory=Config)
    clients: tuple[ClientPlan, ...] = ()
    actions: tuple[Action, ...] = ()
    listener: tuple[ListenerRule, ...] = ()
    until_ms: int = 0
    settle_ms: int = 120_000
    drain: bool = True
    steps: tuple[Step, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON of version 1. Absent and default fields of rules, clients and steps are left out."""
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
        source = _object(data, where)
        if source.get("schema") != PLAN_SCHEMA:
            raise UsageError(
                f"{where} has schema {source.get('schema')!r}; this version reads {PLAN_SCHEMA!r}"
            )
        _known(source, {"schema", *(f.name for f in fields(cls))}, where)
        plan = cls(
            seed=_member(source, "seed", int, 0, where),
            topology=_topology(source.get("topology", {}), f"{where}, topology"),
            config=_config(source.get("config", {}), f"{where}, config"),
            clients=tuple(_client(item, place) for item, place in _items(source, "clients", where)),
            actions=tuple(_action(item, place) for item, place in _items(source, "actions", where)),
            listener=tuple(_rule(item, place) for item, place in _items(source, "listener", where)),
            until_ms=_member(source, "until_ms", int, 0, where),
            settle_ms=_member(source, "settle_ms", int, 120_000, where),
            drain=_member(source, "drain", bool, True, where),
            steps=tuple(_step(item, place) for item, place in _items(source, "steps", where)),
        )
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
                    raise UsageError(
                        f"{place}: there is no node {unknown!r}{_near(unknown, taken)}"
                    )
        for number, step in enumerate(self.steps):
            for name in step.nodes():
                if name not in taken:
                    raise UsageError(
                        f"{where}, step {number} ({step.do}): there is no node {name!r}{_near(name, taken)}"
                    )
        if self.until_ms < last_ms:
            raise UsageError(
                f"{where}: until_ms {self.until_ms} comes before the last action, at {last_ms}"
            )

    def with_actions(self, actions: Iterable[Action]) -> Plan:
        return replace(self, actions=tuple(actions))


NAME_SERVER = "ns"
"""The name server's node."""


def read_plan(path: Path) -> Plan:
    """A plan from a JSON file. Raises UsageError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    return Plan.from_json(data, str(path))


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


def _object(data: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise UsageError(f"{where} must be a JSON object")
    return data


def _near(name: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _known(source: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in source:
        if name not in known:
            raise UsageError(f"{where}: unknown field {name!r}{_near(name, known)}")


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _member(
    source: Mapping[str, Any], name: str, kind: type[T], default: T | None, where: str
) -> T:
    """A field of the type; without a default it has to be there."""
    if name not in source:
        if default is None:
            raise UsageError(f"{where}: the field {name!r} is missing")
        return default
    value = source[name]
    if not _is(value, kind):
        words = {int: "a whole number", str: "text", bool: "true or false", list: "a list"}
        raise UsageError(f"{where}: {name!r} must be {words.get(kind, kind.__name__)}")
    if kind is int and value < 0 and name not in _MAY_BE_NEGATIVE:
        raise UsageError(f"{where}: {name!r} must not be negative")
    return value  # type: ignore[no-any-return]


_MAY_BE_NEGATIVE = frozenset({"suspend_ms", "ms", "delay_level"})


def _items(source: Mapping[str, Any], name: str, where: str) -> list[tuple[Any, str]]:
    found: Sequence[Any] = _member(source, name, list, [], where)
    return [(item, f"{where}, {name}[{number}]") for number, item in enumerate(found)]


def _texts(
    source: Mapping[str, Any], name: str, default: Sequence[str], where: str
) -> tuple[str, ...]:
    found = _member(source, name, list, list(default), where)
    if not all(isinstance(item, str) for item in found):
        raise UsageError(f"{where}: {name!r} must be a list of text")
    return tuple(found)


def _topology(data: Any, where: str) -> Topology:
    source = _object(data, where)
    _known(source, {f.name for f in fields(Topology)}, where)
    usual = Topology()
    topics = usual.topics
    if "topics" in source:
        topics = tuple(_topic(item, place) for item, place in _items(source, "topics", where))
    return Topology(
        _texts(source, "brokers", usual.brokers, where),
        topics,
        _texts(source, "groups", usual.groups, where),
    )


def _topic(data: Any, where: str) -> TopicPlan:
    source = _object(data, where)
    _known(source, {"name", "queues"}, where)
    return TopicPlan(
        _member(source, "name", str, None, where), _member(source, "queues", int, None, where)
    )


def _config(data: Any, where: str) -> Config:
    try:
        return Config.from_json(_object(data, where))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _client(data: Any, where: str) -> ClientPlan:
    source = _object(data, where)
    _known(source, {f.name for f in fields(ClientPlan)}, where)
    kind = _member(source, "kind", str, None, where)
    if kind not in CLIENT_KINDS:
        raise UsageError(f"{where}: kind must be one of {', '.join(CLIENT_KINDS)}, not {kind!r}")
    client = ClientPlan(
        _member(source, "id", str, None, where),
        kind,
        _member(source, "group", str, "", where),
        _texts(source, "topics", (), where),
    )
    if kind == "consumer" and not (client.group and client.topics):
        raise UsageError(f"{where}: a consumer needs a group and topics")
    return client


_ARG_TYPES: Mapping[str, type] = {
    NODE: str,
    STATE: str,
    "string": str,
    "integer": int,
    "boolean": bool,
    "integers": list,
}


def _step(data: Any, where: str) -> Step:
    source = _object(data, where)
    _known(source, {f.name for f in fields(Step)}, where)
    verb, args = _verb(source, where)
    if verb not in faults.FAULTS and verb not in MOVES:
        raise UsageError(f"{where}: a step is a fault, or {' or '.join(MOVES)}, not {verb!r}")
    for_ms = None if source.get("for_ms") is None else _member(source, "for_ms", int, 0, where)
    return Step(
        verb,
        args,
        client=_member(source, "client", str, "", where),
        finished=_member(source, "finished", int, 10, where),
        at_work=_member(source, "at_work", bool, False, where),
        for_ms=for_ms,
        heals=_member(source, "heals", bool, True, where),
        beside=_member(source, "beside", bool, False, where),
        deadline_ms=_member(source, "deadline_ms", int, LATEST_MS, where),
    )


def _action(data: Any, where: str) -> Action:
    source = _object(data, where)
    _known(source, {"at_ms", "do", "args"}, where)
    verb, args = _verb(source, where)
    return Action(_member(source, "at_ms", int, None, where), verb, args)


def _verb(source: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any]]:
    """A verb and its arguments."""
    verb = _member(source, "do", str, None, where)
    known = VERBS.get(verb)
    if known is None:
        raise UsageError(f"{where}: unknown action {verb!r}{_near(verb, VERBS)}")
    args = dict(_object(source.get("args", {}), f"{where}, args"))
    _known(args, set(known), f"{where}, args of {verb}")
    for name, (kind, required) in known.items():
        if name not in args and not required:
            continue
        value: Any = _member(args, name, _ARG_TYPES[kind], None, f"{where}, args of {verb}")
        if kind == "integers" and not all(_is(item, int) for item in value):
            raise UsageError(f"{where}, args of {verb}: {name!r} must be a list of whole numbers")
        if kind == STATE and value not in STATES:
            raise UsageError(
                f"{where}, args of {verb}: {name!r} must be one of {', '.join(STATES)}, not {value!r}"
            )
    return verb, args


def _rule(data: Any, where: str) -> ListenerRule:
    source = dict(_object(data, where))
    usual = ListenerRule()
    _known(source, {f.name for f in fields(ListenerRule)}, where)
    word = _member(source, "outcome", str, usual.outcome.value, where)
    if word not in LISTENER_OUTCOMES:
        raise UsageError(
            f"{where}: outcome must be one of {', '.join(LISTENER_OUTCOMES)}, not {word!r}"
        )
    for name in ("suspend_ms", "delay_level", "duration_ms", "from_ms", "delivery_min"):
        _member(source, name, int, 0, where)
    for name in ("number", "delivery_max"):
        if source.get(name) is not None:
            _member(source, name, int, None, where)
    for name in ("group", "client", "topic", "key"):
        if source.get(name) is not None:
            _member(source, name, str, None, where)
    _member(source, "manual", bool, False, where)
    source["outcome"] = Outcome(word)
    return ListenerRule(**source)
