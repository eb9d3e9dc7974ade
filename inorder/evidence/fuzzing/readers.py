"""Everything of the reference that reads what others wrote, and what is asked of it.

| reader | reads | besides "no error but ProtocolError" |
|---|---|---|
| frames | a stream of frames, in pieces | what was read can be written, and is read again as the same |
| json-header, binary-header | the header of one frame | the same |
| messages | an answer to a pull | the same; compressed bodies are read as well |
| batch | the body of a batch send | the same |
| properties | a message's property string | the same |
| bodies | the JSON bodies | |
| header-fields | the fields of a header | |
| broker, name-server | a stream of requests to a server's core | each one is answered, by something that can be sent |
| consumer, producer | the answer to a client's request | the client goes on: it never raises |

A reader gets bytes and says whether it found them good. `Misbehaved` says what it did that it must not do.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.core.consumer import BY_MODE, ConsumerConfig
from reference_impl.core.io import (
    Answered,
    CallListener,
    Effect,
    ListenerReturned,
    Opened,
    Pushed,
    Received,
    Request,
    Send,
    SendMessage,
    Start,
    TimerFired,
)
from reference_impl.core.nameserver import NameServer
from reference_impl.core.producer import Producer, ProducerConfig
from reference_impl.protocol import bodies
from reference_impl.protocol import headers as h
from reference_impl.protocol.codes import RequestCode as Ask
from reference_impl.protocol.command import FLAG_RESPONSE, Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.frame import FrameDecoder, decode_frame, encode_frame
from reference_impl.protocol.message import (
    SYS_COMPRESSED,
    BatchPart,
    StoredMessage,
    decode_all,
    decode_batch,
    encode,
    encode_batch,
    pack_properties,
    plain_body,
    unpack_properties,
)
from specs.vocabulary import Outcome, Queue, retry_topic

NOW_MS = 1_700_000_000_000
GROUP = "billing"
REQUESTS_PER_CORE = 2_000
"""After so many inputs a server's core is made anew, so that what it has stored stays small."""
UNANSWERED = frozenset({Ask.PULL_MESSAGE, Ask.END_TRANSACTION})
"""A pull may wait for messages; a transaction that ended neither way is answered by nobody, at Apache's broker too."""
ANSWERS_MAX = 60
"""A client that asks more often than this for one input does not come to rest."""


class Misbehaved(Exception):
    """A reader did what it must not do. why: one sentence."""


@dataclass(frozen=True, slots=True)
class Reader:
    """seeds: good inputs, from which bad ones are made. read: True when it took the input for good.

    framed: the seeds are frames; what is changed within one is framed again, else little would get past the lengths.
    """

    name: str
    seeds: tuple[bytes, ...]
    read: Callable[[bytes], bool]
    framed: bool = False


def accepts(reader: Reader, data: bytes) -> bool:
    """Whether the reader takes the input. Misbehaved for any error but ProtocolError."""
    try:
        return reader.read(data)
    except ProtocolError:
        return False
    except Misbehaved:
        raise
    except (Exception, RecursionError) as error:
        raise Misbehaved(f"It raised {error!r}.") from error


# ---------------------------------------------------------------- the codec


def _same(first: object, again: object, what: str) -> None:
    if first != again:
        raise Misbehaved(
            f"{what} was written and read again as another one: {first!r} and {again!r}."
        )


def _rewritten(command: Command) -> None:
    try:
        frame = encode_frame(command)
    except ProtocolError:
        return  # a code beyond 16 bits in a binary header, say
    _same(command, decode_frame(frame[4:]), "A command")


def read_frames(data: bytes) -> bool:
    decoder = FrameDecoder()
    half = len(data) // 2
    count = 0
    for piece in (data[:half], data[half:]):
        decoder.feed(piece)
        while (command := decoder.next_command()) is not None:
            _rewritten(command)
            count += 1
    if decoder.pending_bytes > len(data):
        raise Misbehaved("The decoder keeps more than it was given.")
    return count > 0 and decoder.pending_bytes == 0


def _one_frame(kind: int, header: bytes) -> bool:
    command = decode_frame(bytes((kind,)) + len(header).to_bytes(3, "big") + header + b"body")
    _rewritten(command)
    return True


def read_messages(data: bytes) -> bool:
    raw = decode_all(data, inflate=False)
    for message in raw:
        try:
            record = encode(message)
        except ProtocolError:
            continue  # separators, say, that were read as parts of a name
        (again,) = decode_all(record, inflate=False)
        _same(message, again, "A message")
    plain = decode_all(data)
    _same(
        [plain_body(message.body, message.sys_flag) for message in raw],
        [m.body for m in plain],
        "Bodies",
    )
    return bool(raw)


def read_batch(data: bytes) -> bool:
    parts = decode_batch(data)
    try:
        again = decode_batch(encode_batch(parts))
    except ProtocolError:
        return True
    _same(parts, again, "A batch")
    return bool(parts)


def read_properties(data: bytes) -> bool:
    properties = unpack_properties(data.decode(errors="replace"))
    try:
        packed = pack_properties(properties)
    except ProtocolError:
        return True
    _same(properties, unpack_properties(packed), "A property string")
    return True


_BODIES: tuple[Callable[[bytes], object], ...] = (
    bodies.LockBatch.decode,
    bodies.decode_lock_answer,
    bodies.Heartbeat.decode,
    bodies.decode_consumer_ids,
    bodies.TopicRoute.decode,
    bodies.ClusterInfo.decode,
    bodies.BrokerRegistration.decode,
    bodies.SubscriptionGroup.decode,
)


def read_bodies(data: bytes) -> bool:
    taken = False
    for decode in _BODIES:
        try:
            decode(data)
            taken = True
        except ProtocolError:
            pass
    return taken


_HEADERS: tuple[type[h.Header], ...] = tuple(
    value
    for _, value in sorted(vars(h).items())
    if isinstance(value, type) and issubclass(value, h.Header)
)


def _fields(data: bytes) -> dict[str, str]:
    """`name=value`, one a line."""
    pairs = (line.partition("=") for line in data.decode(errors="replace").split("\n"))
    return {name: value for name, _, value in pairs}


def read_header_fields(data: bytes) -> bool:
    ext = _fields(data)
    taken = False
    for header in _HEADERS:
        try:
            _same(header.from_ext(ext), header.from_ext(header.from_ext(ext).to_ext()), "A header")
            taken = True
        except ProtocolError:
            pass
    with contextlib.suppress(ProtocolError):
        taken = bool(h.SendHeader.from_ext_v2(ext).property_map) or taken
    return taken


# ---------------------------------------------------------------- servers


@dataclass
class _Server:
    """A server's core, and how often it was asked."""

    make: Callable[[], Broker | NameServer]
    core: Broker | NameServer | None = None
    asked: int = 0

    def read(self, data: bytes) -> bool:
        decoder = FrameDecoder()
        decoder.feed(data)
        good = False
        while (command := decoder.next_command()) is not None:
            good = self._ask(command) or good
        return good

    def _ask(self, command: Command) -> bool:
        if self.core is None or self.asked % REQUESTS_PER_CORE == 0:
            self.core = self.make()
            self.core.handle(NOW_MS, Start())
            self.core.handle(NOW_MS, Opened("c", "127.0.0.1:4000"))
        self.asked += 1
        effects = self.core.handle(NOW_MS + self.asked, Received("c", command))
        answers = [
            effect.command
            for effect in effects
            if isinstance(effect, Send) and effect.command.is_response
        ]
        may_wait = command.is_response or command.is_oneway or command.code in UNANSWERED
        if len(answers) != 1 and not may_wait:
            raise Misbehaved(f"A request of code {command.code} got {len(answers)} answers.")
        for effect in effects:
            if isinstance(effect, Send):
                encode_frame(effect.command)
        return any(answer.code == 0 for answer in answers)


def _broker() -> Broker:
    return Broker(BrokerConfig(name_servers=()), BrokerStore())


# ---------------------------------------------------------------- clients


def _honest(command: Command) -> Command:
    """What a cluster of one broker answers."""
    match command.code:
        case Ask.GET_ROUTEINFO_BY_TOPIC if not command.ext.get("topic", "").startswith("%"):
            return command.reply(0, body=ROUTE)
        case Ask.GET_ROUTEINFO_BY_TOPIC:
            return command.reply(17)
        case Ask.GET_CONSUMER_LIST_BY_GROUP:
            return command.reply(0, body=bodies.encode_consumer_ids(["c1"]))
        case Ask.LOCK_BATCH_MQ:
            return command.reply(0, body=bodies.encode_lock_answer([QUEUE]))
        case Ask.QUERY_CONSUMER_OFFSET:
            return command.reply(0, h.OffsetResponse(0).to_ext())
        case Ask.PULL_MESSAGE:
            return command.reply(0, h.PullResponse(0, 1, 0, 1).to_ext(), MESSAGES)
        case Ask.SEND_MESSAGE_V2 | Ask.SEND_BATCH_MESSAGE | Ask.SEND_MESSAGE:
            return command.reply(0, h.SendResponse(OFFSET_ID, 0, 0).to_ext())
        case _:
            return command.reply(0)


def _run(core: object, first: list[Effect], bad: Command) -> None:
    """Answer every request honestly, but those of the code that `bad` has as its opaque: they get `bad`."""
    handle: Callable[[int, object], list[Effect]] = core.handle  # type: ignore[attr-defined]
    effects, asked = list(first), 0
    while effects and asked < ANSWERS_MAX:
        effect = effects.pop(0)
        if isinstance(effect, Request):
            asked += 1
            code = effect.command.code
            answer = (
                replace(bad, flag=FLAG_RESPONSE) if code == bad.opaque else _honest(effect.command)
            )
            effects += handle(NOW_MS + asked, Answered(effect.token, answer))
        elif isinstance(effect, CallListener):
            effects += handle(NOW_MS + asked, ListenerReturned(effect.call_id, Outcome.SUCCESS))
    handle(NOW_MS + asked, Pushed("b0:1", bad))
    handle(NOW_MS + asked, TimerFired(("routes",)))


def _answer_frame(data: bytes) -> Command:
    if len(data) < 4:
        raise ProtocolError("cut")
    return decode_frame(data[4:])


@dataclass
class _Consumers:
    """One mode after the other."""

    count: int = field(default=0)

    def read(self, data: bytes) -> bool:
        bad = _answer_frame(data)
        mode = sorted(BY_MODE)[self.count % len(BY_MODE)]
        self.count += 1
        core = BY_MODE[mode](
            ConsumerConfig("c1", GROUP, {"orders": "*"}, ("ns:1",), mode=mode, consume_from="first")
        )
        _run(core, core.handle(NOW_MS, Start()), bad)
        return True


def _read_as_producer(data: bytes) -> bool:
    bad = _answer_frame(data)
    core = Producer(ProducerConfig("p1", "pg", ("ns:1",), ("orders",), auto_create=True))
    effects = core.handle(NOW_MS, Start())
    effects += core.handle(NOW_MS, SendMessage(1, "orders", b"x", "k"))
    effects += core.handle(
        NOW_MS, SendMessage(2, "orders", b"x", more=(SendMessage(3, "orders", b"y"),))
    )
    _run(core, effects, bad)
    return True


# ---------------------------------------------------------------- good inputs


OFFSET_ID = "7F00000100002A9F0000000000000000"
QUEUE = Queue("orders", "b0", 0)
ROUTE = bodies.TopicRoute(
    (bodies.QueueData("b0", 1, 1),), (bodies.BrokerData("c0", "b0", {0: "127.0.0.1:10911"}),)
).encode()
PROPERTIES = {
    "UNIQ_KEY": "0A0B",
    "__SHARDINGKEY": "k1",
    "TAGS": "paid",
    "KEY_SEQ": "3",
    "shop": "süß",
}
STORED = StoredMessage("orders", 0, 0, 0, b"body", PROPERTIES, born_ms=NOW_MS, store_ms=NOW_MS)
COMPRESSED = replace(
    STORED, body=zlib.compress(b"z" * 5_000), sys_flag=SYS_COMPRESSED, queue_offset=1
)
FROM_V6 = replace(STORED, born_host="[2001:db8::1]:4000", topic="t" * 200, reconsume_times=3)
MESSAGES = encode(STORED)
SEND = h.SendHeader("pg", "orders", 0, NOW_MS, properties=pack_properties(PROPERTIES))
BATCH = encode_batch(
    [BatchPart(b"one", PROPERTIES), BatchPart(b"two"), BatchPart(b"three", {"TAGS": "x"})]
)
HEARTBEAT = bodies.Heartbeat(
    "c1",
    ("pg",),
    (
        bodies.ConsumerData(
            GROUP, subscriptions=(bodies.Subscription.of("orders", "red || blue", NOW_MS),)
        ),
    ),
).encode()
LOCKS = bodies.LockBatch(GROUP, "c1", (QUEUE, Queue("orders", "b0", 1))).encode()
TOPICS = (bodies.TopicConfig("orders"), bodies.TopicConfig("bills", 8, 2))
REGISTRATION = bodies.BrokerRegistration(TOPICS, 1, 2).encode()
GROUP_BODY = bodies.SubscriptionGroup(GROUP).encode()
GOOD_BODIES = (
    ROUTE,
    bodies.TopicRoute.decode(ROUTE).encode(quoted_keys=False),
    HEARTBEAT,
    LOCKS,
    REGISTRATION,
    GROUP_BODY,
    bodies.encode_lock_answer([QUEUE]),
    bodies.encode_consumer_ids(["c1", "c2"]),
    bodies.ClusterInfo(
        (bodies.BrokerData("c0", "b0", {0: "127.0.0.1:1"}),), {"c0": ("b0",)}
    ).encode(),
)

BROKER_REQUESTS: Mapping[Ask, tuple[Mapping[str, str], bytes]] = {
    Ask.SEND_MESSAGE: (SEND.to_ext(), b"body"),
    Ask.SEND_MESSAGE_V2: (
        replace(SEND, topic=retry_topic(GROUP), reconsume_times=16).to_ext_v2(),
        b"body",
    ),
    Ask.SEND_BATCH_MESSAGE: (replace(SEND, batch=True).to_ext_v2(), BATCH),
    Ask.CONSUMER_SEND_MSG_BACK: (h.SendBackHeader(0, GROUP, 0, "0A0B", "orders").to_ext(), b""),
    Ask.END_TRANSACTION: (
        h.EndTransactionHeader("pg", 0, 0, 8, "orders", msg_id="0A0B").to_ext(),
        b"",
    ),
    Ask.PULL_MESSAGE: (
        h.PullHeader(GROUP, "orders", 0, 0, 32, h.PULL_SUBSCRIPTION, subscription="*").to_ext(),
        b"",
    ),
    Ask.LOCK_BATCH_MQ: ({}, LOCKS),
    Ask.UNLOCK_BATCH_MQ: ({}, LOCKS),
    Ask.QUERY_CONSUMER_OFFSET: (h.QueryConsumerOffsetHeader(GROUP, "orders", 0).to_ext(), b""),
    Ask.UPDATE_CONSUMER_OFFSET: (h.UpdateConsumerOffsetHeader(GROUP, "orders", 0, 7).to_ext(), b""),
    Ask.GET_MAX_OFFSET: (h.GetMaxOffsetHeader("orders", 0).to_ext(), b""),
    Ask.GET_MIN_OFFSET: (h.GetMinOffsetHeader("orders", 0).to_ext(), b""),
    Ask.SEARCH_OFFSET_BY_TIMESTAMP: (h.SearchOffsetHeader("orders", 0, NOW_MS).to_ext(), b""),
    Ask.VIEW_MESSAGE_BY_ID: (h.ViewMessageHeader(0).to_ext(), b""),
    Ask.HEART_BEAT: ({}, HEARTBEAT),
    Ask.UNREGISTER_CLIENT: (h.UnregisterClientHeader("c1", consumer_group=GROUP).to_ext(), b""),
    Ask.GET_CONSUMER_LIST_BY_GROUP: (h.ConsumerGroupHeader(GROUP).to_ext(), b""),
    Ask.UPDATE_AND_CREATE_TOPIC: (h.CreateTopicHeader("orders", 4, 4).to_ext(), b""),
    Ask.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: ({}, GROUP_BODY),
}
NAME_SERVER_REQUESTS: Mapping[Ask, tuple[Mapping[str, str], bytes]] = {
    Ask.REGISTER_BROKER: (
        h.RegisterBrokerHeader("b0", "127.0.0.1:10911", "c0", 0).to_ext(),
        REGISTRATION,
    ),
    Ask.UNREGISTER_BROKER: (
        h.UnregisterBrokerHeader("b0", "127.0.0.1:10911", "c0", 0).to_ext(),
        b"",
    ),
    Ask.GET_ROUTEINFO_BY_TOPIC: (h.GetRouteHeader("orders", True).to_ext(), b""),
    Ask.GET_BROKER_CLUSTER_INFO: ({}, b""),
    Ask.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: ({}, b""),
    Ask.PUT_KV_CONFIG: (h.KvConfigHeader("ORDER_TOPIC_CONFIG", "orders", "b0:4").to_ext(), b""),
    Ask.GET_KV_CONFIG: (h.KvConfigHeader("ORDER_TOPIC_CONFIG", "orders").to_ext(), b""),
    Ask.DELETE_KV_CONFIG: (h.KvConfigHeader("ORDER_TOPIC_CONFIG", "orders").to_ext(), b""),
}


def _frames(requests: Mapping[Ask, tuple[Mapping[str, str], bytes]]) -> tuple[bytes, ...]:
    """Each request in both kinds of header."""
    return tuple(
        encode_frame(Command(code, ext, body, opaque=7, binary=binary))
        for code, (ext, body) in requests.items()
        for binary in (False, True)
    )


def _answers(*codes: Ask) -> tuple[bytes, ...]:
    """Honest answers; the opaque of each is the code that it answers."""
    return tuple(
        encode_frame(
            replace(_honest(Command(code, {"topic": "orders"}, opaque=code)), binary=binary)
        )
        for code in codes
        for binary in (False, True)
    )


def _header_of(frame: bytes) -> bytes:
    return frame[8 : 8 + int.from_bytes(frame[5:8], "big")]


def readers() -> tuple[Reader, ...]:
    """All of them, with cores of their own."""
    frames, packed = _frames(BROKER_REQUESTS), encode(COMPRESSED)
    broker, name_server = _Server(_broker), _Server(NameServer)
    headers = tuple(
        "\n".join(f"{name}={value}" for name, value in ext.items()).encode()
        for ext, _ in (*BROKER_REQUESTS.values(), *NAME_SERVER_REQUESTS.values())
        if ext
    )
    return (
        Reader("frames", (*frames, frames[0] + frames[3] + frames[6]), read_frames),
        Reader("json-header", tuple(map(_header_of, frames[0::2])), partial(_one_frame, 0)),
        Reader("binary-header", tuple(map(_header_of, frames[1::2])), partial(_one_frame, 1)),
        Reader("messages", (MESSAGES, packed, encode(FROM_V6), MESSAGES + packed), read_messages),
        Reader("batch", (BATCH, encode_batch([BatchPart(b"")])), read_batch),
        Reader(
            "properties", (pack_properties(PROPERTIES).encode(), b"A\x01b\x02c"), read_properties
        ),
        Reader("bodies", GOOD_BODIES, read_bodies),
        Reader("header-fields", headers, read_header_fields),
        Reader("broker", frames, broker.read, framed=True),
        Reader("name-server", _frames(NAME_SERVER_REQUESTS), name_server.read, framed=True),
        Reader(
            "consumer",
            _answers(
                Ask.GET_ROUTEINFO_BY_TOPIC,
                Ask.GET_CONSUMER_LIST_BY_GROUP,
                Ask.LOCK_BATCH_MQ,
                Ask.QUERY_CONSUMER_OFFSET,
                Ask.PULL_MESSAGE,
                Ask.HEART_BEAT,
            ),
            _Consumers().read,
            framed=True,
        ),
        Reader(
            "producer",
            _answers(
                Ask.GET_ROUTEINFO_BY_TOPIC,
                Ask.SEND_MESSAGE_V2,
                Ask.SEND_BATCH_MESSAGE,
                Ask.HEART_BEAT,
            ),
            _read_as_producer,
            framed=True,
        ),
    )
