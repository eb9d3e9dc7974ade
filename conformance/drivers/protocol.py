"""The driver protocol, version 2: JSON lines, requests on the driver's stdin, answers and events on its stdout.

A driver is one client of a plan. It is asked `hello` first, then `start`, any number of `send`, and `stop`; a driver
may also know `send_batch` (several messages in one request, told as one `sent`), `send_half` (several in one
transaction, each told by a `sent` of its own, the transaction's end by `ending` and `ended`), `send_delayed` (one that
is there for consumers only after a while), `read` (a pull consumer reads a topic
to its end; the answer has the messages) and `query` (the messages of a key, likewise). Each request has an id, which
its answer repeats. What happens is told by events, each with the host's monotonic clock in µs, in the order of the
lines: `delivered` before the listener's work, `finished` before the client learns its result, `sent` when a send has
its answer. The listener decides by the rules that came with `start`. An unknown verb is refused, and so is a line
beyond `LINE_BYTES_MAX`. When stdin ends the driver dies at once. `assigned`, `added`, `dropped`, `locked`, `unlocked`,
`committed`, `looked_up`, `moved`, `gave_up`, `received`, `acked` and `released` are optional: hello's `events` says
what a driver tells whenever it happens, or what can't happen with its client. A lease, a commit and a look-up of the
stored offset are told twice: `locking`, `committing` and `looking_up` before the request, `locked`, `committed` and
`looked_up` once it is answered.

`locked` tells that a lane was lent to this client alone, or that it was asked for once more and is still lent;
`unlocked`, that the client is about to give it back. Hello's `lease_ms` says for how long a lease certainly lasts after
the request by which it was given or renewed, whatever becomes of the client; without it nobody knows.

A driver behind `exec:COMMAND` also knows `prepare` (make these topics with so many queues, empty, and these groups) and
`read`; `progress` asks what the store says that a group has reached in each queue of a topic, of a driver that is no
client of the group, and `leader` which node of a system with several leads the first queue of a topic. It may be one
process that hosts all clients: its hello says `"hosts": true`, then every `send` and `stop` names its client, as
`start` does anyway, and every event does; a `stop` without one ends the process. Such a one may know `crash` (this
client is gone without a word: nothing is committed or given back). Hello's `verbs` names the optional verbs that a
driver knows, and `broker` who implements the queues.

`added` comes before the client's work on a lane begins, and `dropped` once it is over: after the last commit and the
unlock that go with it. Both name the work by a number, `incarnation`, new for each; so does then every delivery.
`added` says by `value` where the work begins, once that is known; `moved` tells that the client goes on elsewhere than
where it was, because the system says so, as where its offset is out of range.
`assigned` tells a share that the client computed, of which topic, and from which members and queues; only one that
differs from the last need be told.

`gave_up` tells that a message is done with although no call of it ended well: the client, or the system behind it, put
it away or dropped it. It comes before anything beyond the message is delivered, from the client that had the lane. A
driver that does not know when that happens does not name the event: then nothing is concluded from there being none,
and what rests on it is possible and not refuted. Where nobody ever gives up it is named, for it can't happen.

`received`, `acked` and `released` are of systems that lease messages one by one: a message was handed out, under a
lease that `lease_id` names and that lasts at least until `lease_until_us`; its acknowledgement was answered; it is
about to be put back. `receiving` and `acking` come before the request. There is no event of a lease of a message that
is asked to last longer: whoever names `received` says that this does not happen. A driver that asks again and again
says `receiving` once, before the first question whose answer it may be. It may say now and then that nothing came
(`received` with the outcome `refused`: each question since was answered so), or that an answer was lost (`unknown`),
and then `receiving` anew.
Where the server answers that a message is put back, `released` has a number, `release`, and `put_back` is the answer.
`received` tells the message's `key`, where it has one and the driver knows it.

Version 2 has `properties`: those of the application's own that a `send` is asked to give its message, and that a
message shows when it is delivered or read; a driver that does not tell them leaves them unknown. A driver that refuses
version 2 is greeted once more with version 1, and then asked for nothing that is new.

`python -m conformance.drivers.protocol` writes the schema into `specs/schemas/`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from specs.documents import NotReadable, from_json
from specs.errors import InorderError
from specs.faults import crash
from specs.plan.config import MODES, Config
from specs.plan.plan import ListenerRule
from specs.reading import DRAFT, an_object, near, read, schema_of, told

L = TypeVar("L", bound="Line")
DRIVER_SCHEMA = "inorder/driver/v2"
VERSION = 2
VERSIONS = (1, 2)
"""Those that are spoken, and the newest: what a driver is asked for first."""
WITH_PROPERTIES = 2
"""From which on messages have properties."""
LINE_BYTES_MAX = 1 << 20
"""Of a request and of an event, without its newline."""
ANSWER_BYTES_MAX = 1 << 28
"""Of an answer: that to `read` holds a whole topic."""
QUOTED = 200
"""So much of a wrong line, or of a value in it, stands in the sentence about it."""
REQUIRED_EVENTS = ("delivered", "finished", "sent")
OPTIONAL_EVENTS = (
    "assigned",
    "added",
    "dropped",
    "locked",
    "unlocked",
    "committed",
    "looked_up",
    "moved",
    "gave_up",
    "received",
    "acked",
    "released",
)
CALL_OUTCOMES = ("success", "suspend", "commit", "rollback", "null", "threw")

CONFIGURED = (
    "max_reconsume_times",
    "suspend_ms",
    "batch",
    "threads",
    "pull_batch",
    "persist_ms",
    "heartbeat_ms",
    "consume_from",
    "mode",
    "message_model",
    "subscription",
)
"""What a driver is told of a plan's configuration at `start`; lease times are its process's own affair."""

_AT = told("The host's monotonic clock, µs.", least=0)
_ID = told(least=0)
_WORK = told(least=1)
_SOME = told(fewest=1)
_DIGITS = re.compile("[0-9]{0,18}")
_PROPERTIES = told("The application's own, by name. Without the field nobody says.")
_SEND_OUTCOMES = ("ok", "refused", "unknown")


class WrongLine(InorderError):
    """What was said is no line of the protocol; the message says where and why."""


def brief(value: object) -> str:
    """A value as a sentence quotes it: not all of what may be a megabyte, or nest too deep to be spelt."""
    try:
        text = repr(value)
    except RecursionError:
        return "something that nests too deep"
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}..."


def _version(value: Any, where: str) -> int:
    if value not in VERSIONS or isinstance(value, bool):
        known = " or ".join(map(str, VERSIONS))
        raise WrongLine(f"{where} must be {known}, not {brief(value)}")
    return int(value)


def _number_as_text(value: Any, where: str) -> str | None:
    if value is None or (isinstance(value, str) and _DIGITS.fullmatch(value)):
        return value
    raise WrongLine(
        f"{where} must be a number as text, as it was sent, or null, not {brief(value)}"
    )


_VERSION = told(reads=_version, schema=lambda: {"enum": list(VERSIONS)})
_NUMBER_AS_TEXT = told(
    reads=_number_as_text,
    schema=lambda: {"type": ["string", "null"], "pattern": f"^{_DIGITS.pattern}$"},
)


class Line:
    """A line that a model describes. CONST: by what it is told from others, and what is always the same in it.

    The models are what a reader refuses by, and what the schema is made of (`specs.reading`). A field that has a
    default may be left out; null is none of its values unless its annotation says so.
    """

    CONST: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __init_subclass__(cls, **always: Any) -> None:
        super().__init_subclass__()
        if always:
            cls.CONST = MappingProxyType(always)


# ---------------------------------------------------------------- what lines hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as a consumer, or who reads a queue, is given it."""

    topic: str
    broker: str
    queue_id: int
    queue_offset: int
    message_id: str | None = field(metadata=told("The unique key that the producer gave it."))
    reconsume_times: int
    body: str
    key: str | None = None
    key_seq: str | None = field(default=None, metadata=_NUMBER_AS_TEXT)
    tags: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, metadata=_PROPERTIES)
    incarnation: int = field(
        default=1, metadata=told("The number of the work on the lane.", least=1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMessage:
    message: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfMessage:
    number: int = field(metadata=told("Of its own `sent`.", least=0))
    message: str
    body: str
    key: str = ""
    properties: Mapping[str, str] = field(default_factory=dict, metadata=_PROPERTIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    queues: int = field(metadata=told(least=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    topic: str
    broker: str
    queue_id: int
    value: int


# ---------------------------------------------------------------- requests


@dataclass(frozen=True, kw_only=True)
class _Request(Line):
    id: int = field(metadata=_ID)


@dataclass(frozen=True, kw_only=True)
class _OfAClient(Line):
    """client: in a line to or from a process that hosts everybody."""

    client: str = field(
        default="", metadata=told("Of a process that hosts everybody: whose it is.")
    )


@dataclass(frozen=True, kw_only=True)
class Hello(_Request, verb="hello"):
    version: int = field(metadata=_VERSION)


@dataclass(frozen=True, kw_only=True)
class Start(_Request, verb="start"):
    role: str = field(metadata=told(choices=("consumer", "producer")))
    client: str
    group: str
    namesrv: str
    topics: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(
        default_factory=dict, metadata=told("Of a plan's configuration, what a client has.")
    )
    listener: tuple[Mapping[str, Any], ...] = field(
        default=(), metadata=told("A plan's listener rules.")
    )


@dataclass(frozen=True, kw_only=True)
class Send(_Request, _OfAClient, verb="send"):
    topic: str
    message: str
    body: str
    key: str = ""
    key_seq: int = 0
    tags: str = ""
    properties: Mapping[str, str] = field(default_factory=dict, metadata=_PROPERTIES)


@dataclass(frozen=True, kw_only=True)
class SendDelayed(Send, verb="send_delayed"):
    delay_level: int = field(metadata=told("As RocketMQ counts.", least=1))
    delay_ms: int = field(metadata=told("What the level means.", least=0))


@dataclass(frozen=True, kw_only=True)
class Select(_Request, verb="select"):
    key: str
    queues: int = field(metadata=told(least=1))


@dataclass(frozen=True, kw_only=True)
class SendBatch(_Request, _OfAClient, verb="send_batch"):
    topic: str
    messages: tuple[BatchMessage, ...] = field(metadata=_SOME)
    tags: str = ""


@dataclass(frozen=True, kw_only=True)
class SendHalf(_Request, _OfAClient, verb="send_half"):
    """Messages in one transaction, which then ends so."""

    topic: str
    messages: tuple[HalfMessage, ...] = field(metadata=_SOME)
    ends: str = field(metadata=told(choices=("commit", "rollback")))
    tags: str = ""


@dataclass(frozen=True, kw_only=True)
class Read(_Request, verb="read"):
    topic: str
    group: str
    client: str
    namesrv: str


@dataclass(frozen=True, kw_only=True)
class Query(_Request, verb="query"):
    topic: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Prepare(_Request, verb="prepare"):
    topics: tuple[Topic, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AskProgress(_Request, verb="progress"):
    group: str
    topic: str


@dataclass(frozen=True, kw_only=True)
class AskLeader(_Request, verb="leader"):
    topic: str


@dataclass(frozen=True, kw_only=True)
class Crash(_Request, verb=crash.VERB):
    client: str


@dataclass(frozen=True, kw_only=True)
class Stop(_Request, _OfAClient, verb="stop"):
    """Without a client: the process itself."""


# ---------------------------------------------------------------- answers


@dataclass(frozen=True, kw_only=True)
class Answer(Line, ok=True):
    reply: int = field(metadata=_ID)
    at_us: int = field(metadata=_AT)
    version: int = field(default=VERSIONS[0], metadata=_VERSION)
    driver: str = ""
    client: str = field(default="", metadata=told("The version of the client library."))
    client_id: str = field(default="", metadata=told("Its id in the protocol."))
    broker: str = field(default="", metadata=told("Who implements the queues, with a version."))
    hosts: bool = field(default=False, metadata=told("This one process is all clients."))
    verbs: tuple[str, ...] = field(default=(), metadata=told("The optional verbs that it knows."))
    modes: tuple[str, ...] = field(
        default=MODES[:1],
        metadata=told("How its groups can be told to consume.", choices=MODES),
    )
    lease_ms: int = field(
        default=0, metadata=told("How long a lease certainly lasts; 0: nobody knows.", least=0)
    )
    queue_id: int = field(
        default=0, metadata=told("To select: the place of the chosen queue, from 0.")
    )
    events: tuple[str, ...] = field(
        default=(), metadata=told(choices=(*REQUIRED_EVENTS, *OPTIONAL_EVENTS))
    )
    messages: tuple[Message, ...] = field(
        default=(), metadata=told("What was read, or found by a key.")
    )
    progress: tuple[Progress, ...] = field(
        default=(), metadata=told("What the store says that a group has reached, -1 for nothing.")
    )
    node: int = field(
        default=0,
        metadata=told("To leader: the number of the node that leads the topic's first queue."),
    )


@dataclass(frozen=True, kw_only=True)
class Refusal(Line, ok=False):
    reply: int | None
    error: str
    at_us: int = field(metadata=_AT)


# ---------------------------------------------------------------- events


@dataclass(frozen=True, kw_only=True)
class _Event(_OfAClient):
    at_us: int = field(metadata=_AT)


@dataclass(frozen=True, kw_only=True)
class _OfAQueue(_Event):
    topic: str
    broker: str
    queue_id: int


@dataclass(frozen=True, kw_only=True)
class Delivered(_Event, event="delivered"):
    call: int = field(metadata=_ID)
    messages: tuple[Message, ...] = field(metadata=_SOME)


@dataclass(frozen=True, kw_only=True)
class Finished(_Event, event="finished"):
    call: int = field(metadata=_ID)
    outcome: str = field(metadata=told(choices=CALL_OUTCOMES))
    manual: bool
    suspend_ms: int = field(
        metadata=told("What the listener asked for; -1: the consumer's default.")
    )


@dataclass(frozen=True, kw_only=True)
class Committing(_OfAQueue, event="committing"):
    commit: int = field(metadata=_ID)
    value: int = field(metadata=told("The offset of the next message."))
    incarnation: int = field(default=1, metadata=_WORK)


@dataclass(frozen=True, kw_only=True)
class Committed(_Event, event="committed"):
    commit: int = field(metadata=_ID)
    outcome: str = field(metadata=told(choices=_SEND_OUTCOMES))


@dataclass(frozen=True, kw_only=True)
class LookingUp(_OfAQueue, event="looking_up"):
    look: int = field(metadata=_ID)
    incarnation: int = field(default=1, metadata=_WORK)


@dataclass(frozen=True, kw_only=True)
class LookedUp(_Event, event="looked_up"):
    look: int = field(metadata=_ID)
    outcome: str = field(metadata=told(choices=_SEND_OUTCOMES))
    value: int = field(metadata=told("The stored offset; -1: none is stored."))


@dataclass(frozen=True, kw_only=True)
class Locking(_OfAQueue, event="locking"):
    lock: int = field(metadata=_ID)


@dataclass(frozen=True, kw_only=True)
class Locked(_Event, event="locked"):
    lock: int = field(metadata=_ID)
    outcome: str = field(metadata=told(choices=_SEND_OUTCOMES))


@dataclass(frozen=True, kw_only=True)
class Unlocked(_OfAQueue, event="unlocked"):
    """The lane is about to be given back."""


@dataclass(frozen=True, kw_only=True)
class Moved(_OfAQueue, event="moved"):
    incarnation: int = field(default=1, metadata=_WORK)
    queue_offset: int = field(metadata=told("Where it would have gone on."))
    value: int = field(metadata=told("Where it goes on instead."))


@dataclass(frozen=True, kw_only=True)
class GaveUp(_OfAQueue, event="gave_up"):
    queue_offset: int
    message_id: str
    incarnation: int = field(default=1, metadata=_WORK)


@dataclass(frozen=True, kw_only=True)
class Receiving(_OfAQueue, event="receiving"):
    """From now on the server may hand a message out to this client."""

    receive: int = field(metadata=_ID)


@dataclass(frozen=True, kw_only=True)
class Received(_Event, event="received"):
    """A message was handed out; without one (`refused`), or nobody knows (`unknown`), the message's fields are left
    out."""

    receive: int = field(metadata=_ID)
    outcome: str = field(default="ok", metadata=told(choices=_SEND_OUTCOMES))
    queue_offset: int = -1
    lease_id: str = field(
        default="", metadata=told("What names the lease when it is acknowledged.")
    )
    reconsume_times: int = field(
        default=0,
        metadata=told("How often it was handed out before, as the server says.", least=0),
    )
    lease_until_us: int = field(
        default=0,
        metadata=told("Until when the lease lasts at least, on the host's clock.", least=0),
    )
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Acking(_OfAQueue, event="acking"):
    ack: int = field(metadata=_ID)
    queue_offset: int
    lease_id: str


@dataclass(frozen=True, kw_only=True)
class Acked(_Event, event="acked"):
    ack: int = field(metadata=_ID)
    outcome: str = field(metadata=told(choices=_SEND_OUTCOMES))


@dataclass(frozen=True, kw_only=True)
class Released(_OfAQueue, event="released"):
    """The message is about to be put back. Nobody answers that, unless it has a number: then `put_back` does."""

    release: int = field(default=0, metadata=_ID)
    queue_offset: int
    lease_id: str
    suspend_ms: int = field(
        default=-1, metadata=told("How long it is not to come again; -1: nobody says.")
    )


@dataclass(frozen=True, kw_only=True)
class PutBack(_Event, event="put_back"):
    """What `released` has told was answered."""

    release: int = field(metadata=_WORK)
    outcome: str = field(metadata=told(choices=_SEND_OUTCOMES))


@dataclass(frozen=True, kw_only=True)
class Added(_OfAQueue, event="added"):
    incarnation: int = field(metadata=_WORK)
    value: int = field(
        default=-1, metadata=told("The offset at which the work begins; -1: nobody says.")
    )


@dataclass(frozen=True, kw_only=True)
class Dropped(_OfAQueue, event="dropped"):
    incarnation: int = field(metadata=_WORK)


@dataclass(frozen=True, kw_only=True)
class Assigned(_Event, event="assigned"):
    topic: str
    members: tuple[str, ...] = field(
        metadata=told("Their ids in the protocol, in the client's order.")
    )
    queues: tuple[str, ...] = field(metadata=told("`broker/queue` each, in the client's order."))
    share: tuple[str, ...] = field(metadata=told("What the client takes of them."))


@dataclass(frozen=True, kw_only=True)
class Sent(_Event, event="sent"):
    id: int = field(metadata=_ID)
    outcome: str = field(metadata=told(choices=_SEND_OUTCOMES))
    status: str = ""
    broker: str = ""
    queue_id: int = 0
    queue_offset: int = 0
    code: int = 0
    why: str = ""
    choices: tuple[str, ...] = field(
        default=(),
        metadata=told("The queues that the key's hash chose from, in their order."),
    )


@dataclass(frozen=True, kw_only=True)
class Ending(_Event, event="ending"):
    """A transaction is about to be ended, as it was asked for."""

    id: int = field(metadata=_ID)


@dataclass(frozen=True, kw_only=True)
class Ended(_Event, event="ended"):
    id: int = field(metadata=_ID)
    outcome: str = field(metadata=told(choices=_SEND_OUTCOMES))


REQUESTS: Mapping[str, type[Line]] = {
    model.CONST["verb"]: model
    for model in (
        Hello,
        Start,
        Send,
        SendDelayed,
        Select,
        SendBatch,
        SendHalf,
        Read,
        Query,
        Prepare,
        AskProgress,
        AskLeader,
        Crash,
        Stop,
    )
}
"""What a driver is asked, by its verb."""
EVENTS: Mapping[str, type[Line]] = {
    model.CONST["event"]: model
    for model in (
        Delivered,
        Finished,
        Committing,
        Committed,
        LookingUp,
        LookedUp,
        Locking,
        Locked,
        Unlocked,
        Moved,
        GaveUp,
        Receiving,
        Received,
        Acking,
        Acked,
        Released,
        PutBack,
        Added,
        Dropped,
        Assigned,
        Sent,
        Ending,
        Ended,
    )
}
"""What a driver tells, by its name."""
LINES: Mapping[str, type[Line]] = {"answer": Answer, "refusal": Refusal, **EVENTS}
"""What a driver says."""


def parse(raw: bytes) -> Any:
    """A line that a driver wrote, as JSON. Raises WrongLine, with the remedy where it can be known."""
    if raw.startswith(codecs.BOM_UTF8):
        raise WrongLine("it begins with a byte order mark: write UTF-8 without one")
    if b"\0" in raw[:2] or raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise WrongLine("it is UTF-16, it seems: write UTF-8, without a byte order mark")
    try:
        return from_json(raw)
    except NotReadable as error:
        raise WrongLine(
            f"it {error}; each line is one JSON object, and what is for people goes to stderr"
        ) from error


def read_said(line: Any) -> Line:
    """A line that a driver wrote: an event, an answer or a refusal. Raises WrongLine."""
    line = an_object(line, "the line", WrongLine)
    if "event" in line:
        return _read(EVENTS, line, "event")
    if "ok" not in line:
        raise WrongLine(
            "it is neither an event (by the field 'event') nor an answer (by 'reply' and 'ok')"
        )
    match line["ok"]:
        case True:
            return read_as(Answer, line, "the answer")
        case False:
            return read_as(Refusal, line, "the refusal")
        case other:
            raise WrongLine(f"the answer: 'ok' must be true or false, not {brief(other)}")


def read_request(line: Any) -> Line:
    """A line that a driver is asked by. Raises WrongLine."""
    return _read(REQUESTS, an_object(line, "the request", WrongLine), "verb")


def _read(known: Mapping[str, type[Line]], line: Mapping[str, Any], by: str) -> Line:
    name = line.get(by)
    if not isinstance(name, str) or name not in known:
        meant = near(name[:QUOTED], known) if isinstance(name, str) else ""
        raise WrongLine(f"there is no {by} {brief(name)}{meant}")
    return read_as(known[name], line, f"the {by} {name}")


def read_as(model: type[L], line: Mapping[str, Any], where: str) -> L:
    """The line as the model has it. Raises WrongLine."""
    for name, value in model.CONST.items():
        if name not in line:
            raise WrongLine(f"{where}: the field {name!r} is missing")
        if line[name] is not value and line[name] != value:
            raise WrongLine(f"{where}: {name!r} must be {value!r}, not {brief(line[name])}")
    return read(model, line, where, error=WrongLine, besides=model.CONST)


def rules_as_json(rules: Sequence[ListenerRule]) -> list[dict[str, Any]]:
    """Listener rules as a driver gets them: without what is usual."""
    usual = asdict(ListenerRule())
    return [
        {name: value for name, value in asdict(rule).items() if value != usual[name]}
        for rule in rules
    ]


def configured(config: Config) -> dict[str, Any]:
    """The configuration as a driver gets it."""
    return {name: value for name, value in config.to_json().items() if name in CONFIGURED}


def driver_schema() -> dict[str, Any]:
    """Any line of the protocol, in either direction; draft 2020-12."""
    lines = {**REQUESTS, **LINES}
    return {
        "$schema": DRAFT,
        "$id": DRIVER_SCHEMA,
        "title": "A line of the driver protocol: a request, an answer or an event",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": {name: _schema_of(model) for name, model in lines.items()},
    }


def _schema_of(model: type[Line]) -> Any:
    found = schema_of(model)
    always = {name: {"const": value} for name, value in model.CONST.items()}
    found["properties"] = {**always, **found["properties"]}
    found["required"] = [*always, *found["required"]]
    return _in_order(found)


def _in_order(schema: Any) -> Any:
    """With the names of what is required in their order, wherever any are."""
    if isinstance(schema, list):
        return [_in_order(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: sorted(each) if name == "required" and isinstance(each, list) else _in_order(each)
        for name, each in schema.items()
    }


def schema_text() -> str:
    """The schema as `specs/schemas/driver.v2.json` holds it."""
    return json.dumps(driver_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    path = Path(__file__).resolve().parents[2] / "specs" / "schemas" / "driver.v2.json"
    path.write_text(schema_text(), encoding="utf-8")
