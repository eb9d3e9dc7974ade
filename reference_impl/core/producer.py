"""A producer: puts each message into a queue and says how the send ended.

| the message has | queue | tries |
|---|---|---|
| a selector of its own | the one that it chooses | one |
| a sharding key | the key's Java hash, modulo the number of queues, made positive | one |
| neither | the next in turn, avoiding the broker that just failed | one, and `retries` more |
| neither, one way | the same | one |

The queues of a topic are those that can be written, by broker name and number, so that every producer sees the
same list; a fixed order configuration in the route (`broker:number;...`) replaces it. A send is tried again only
after a failure or a refusal that allows it, and never after a timeout: its time is used up. Sends wait for the
topic's route. The messages of a batch go to one queue in one request. Where it was switched on, brokers that were slow
or failed are avoided for a while (`core.fault_avoidance`), large bodies are compressed, and a topic that does not
exist yet is sent to the brokers that would make it.
Source: `DefaultMQProducerImpl`, `SelectMessageQueueByHash` of apache/rocketmq.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reference_impl.core.fault_avoidance import Faults
from reference_impl.core.io import (
    Address,
    Answered,
    Begin,
    CancelTimer,
    Effect,
    End,
    Failed,
    Input,
    Note,
    Oneway,
    Pushed,
    Request,
    SendDone,
    SendMessage,
    SetTimer,
    Shutdown,
    Start,
    Stopped,
    TimerFired,
)
from reference_impl.protocol.bodies import Heartbeat, TopicRoute, java_hash
from reference_impl.protocol.codes import STORED, RequestCode, ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.headers import (
    DEFAULT_TOPIC,
    PERM_INHERIT,
    PERM_WRITE,
    CheckTransactionHeader,
    EndTransactionHeader,
    GetRouteHeader,
    SendHeader,
    SendResponse,
    UnregisterClientHeader,
)
from reference_impl.protocol.message import (
    PROPERTY_CHECKED,
    PROPERTY_DELAY,
    PROPERTY_KEYS,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_KEY,
    SYS_COMPRESSED,
    SYS_PREPARED,
    BatchPart,
    StoredMessage,
    decode_all,
    encode_batch,
    own_properties,
    pack_properties,
    parse_offset_message_id,
    unpack_properties,
)
from specs.errors import UsageError
from specs.history.hashes import props_hash
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome, Queue

KEY_SEQ = "KEY_SEQ"
HALF = "half"
"""How a row of a SEND says that the message is not to be seen before its commit."""
STATES = {
    "commit": EndTransactionHeader.COMMIT,
    "rollback": EndTransactionHeader.ROLLBACK,
    "unknown": EndTransactionHeader.UNKNOWN,
}
SELECTOR = "java-hash"
"""What `Producer.select` declares in the history: producers that say the same choose the same queue."""
STOPPING = "stopping"
"""Why a producer that is shutting down takes no message."""
ROUTES = ("routes",)
HEARTBEAT = ("heartbeat",)

RETRIED_CODES = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
    }
)
RETRIED_FAILURES = frozenset({"closed", "unreachable"})

OnEnd = Callable[[int, Command | None, str], None]


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """Times in ms. retries: further tries of a message without a key. topics: whose routes are asked for at once.

    avoid_faults: brokers that were slow or failed are left alone for a while. compress_over_bytes: bodies of that size
    and more are compressed, None for none; level: zlib's. auto_create: a topic without a route is sent to the brokers
    that make topics on demand, `new_topic_queues` queues each at most.
    """

    client_id: str
    group: str
    name_servers: tuple[Address, ...]
    topics: tuple[str, ...] = ()
    retries: int = 2
    send_timeout_ms: int = 3_000
    request_timeout_ms: int = 3_000
    route_poll_ms: int = 30_000
    heartbeat_ms: int = 30_000
    avoid_faults: bool = False
    compress_over_bytes: int | None = None
    compress_level: int = 5
    auto_create: bool = False
    new_topic_queues: int = 4

    @classmethod
    def from_plan(
        cls,
        plan: Config,
        *,
        client_id: str,
        group: str,
        topics: tuple[str, ...],
        name_servers: tuple[Address, ...],
    ) -> ProducerConfig:
        """A producer for a planned run. Routes are polled as often as hearts beat: both are 30 s by default."""
        beat_ms = plan.heartbeat_ms
        return cls(
            client_id, group, name_servers, topics, route_poll_ms=beat_ms, heartbeat_ms=beat_ms
        )


def writable_queues(topic: str, route: TopicRoute) -> list[Queue]:
    """The queues that a message can be sent to, in the order in which every producer must see them.

    Queues of a broker without a master are left out. With an order configuration the list is that one,
    whichever brokers are there.
    """
    if route.order_conf:
        return _ordered_queues(topic, route.order_conf)
    masters = {item.broker for item in route.brokers if item.master is not None}
    return sorted(
        Queue(topic, item.broker, number)
        for item in route.queues
        if item.perm & PERM_WRITE and item.broker in masters
        for number in range(item.write_queues)
    )


def _ordered_queues(topic: str, order_conf: str) -> list[Queue]:
    queues = []
    for part in order_conf.split(";"):
        broker, _, count = part.strip().rpartition(":")
        if broker and count.isascii() and count.isdigit() and len(count) <= 5:
            queues += [Queue(topic, broker, number) for number in range(int(count))]
    return queues


@dataclass(slots=True, eq=False)
class Sending:
    """One message on its way. more: those that are in one batch with it."""

    message: SendMessage
    message_id: str
    properties: str
    body_hash: int
    props_hash: int
    more: tuple[Sending, ...] = ()
    attempt: int = 0
    last_broker: str | None = None
    op: int = 0
    packed: bytes | None = None  # the body, compressed
    tried_ms: int = 0
    doubt: bool = False  # a try ended without an answer


class Producer:
    """Sends messages. Many may be on their way at once; order between them is the caller's affair."""

    def __init__(self, config: ProducerConfig) -> None:
        self.config = config
        self.routes: dict[str, TopicRoute] = {}
        self.queues: dict[str, list[Queue]] = {}
        self.views: dict[str, str] = {}  # by topic: selector and queues, for the recorder
        self.addresses: dict[str, Address] = {}
        self.stopping = False
        self.stopped = False
        self._out: list[Effect] = []
        self._number = 0
        self._waiting: dict[Hashable, OnEnd] = {}
        self._parked: dict[str, list[Sending]] = {}  # by topic: until the route is known
        self._open: set[Sending] = set()  # not done yet
        self._born_ms: int | None = None
        self._ids = 0
        self._turn = 0
        self._name_server = 0  # the one that answered last
        self._faults = Faults()
        self._borrowed: set[str] = set()  # topics that do not exist yet
        self._beaten: set[Address] = set()
        self._leave_op = 0
        self._unregistering = 0
        self._leaving = False
        self._who: dict[str, Any] = {"client_id": config.client_id}
        self._inputs: dict[type[Any], Callable[[int, Any], None]] = {
            SendMessage: self._on_send,
            Answered: self._on_answered,
            Failed: self._on_failed,
            Pushed: self._on_pushed,
            TimerFired: self._on_timer,
            Start: self._on_start,
            Shutdown: self._on_shutdown,
        }

    def handle(self, now_ms: int, input: Input) -> list[Effect]:
        """Takes in one input and gives the effects to carry out, in order. After `Stopped`: none, whatever comes."""
        out: list[Effect] = []
        self._out = out
        if not self.stopped:
            if self._born_ms is None:
                self._born_ms = now_ms
            react = self._inputs.get(type(input))
            if react is not None:
                react(now_ms, input)
        return out

    # ------------------------------------------------------------ life

    def _on_start(self, now_ms: int, input: Start) -> None:
        self._out.append(Note(Kind.JOIN, Outcome.OK, self._who))
        self._out.append(SetTimer(ROUTES, self.config.route_poll_ms))
        self._out.append(SetTimer(HEARTBEAT, self.config.heartbeat_ms))
        for topic in self.config.topics:
            self._ask_route(now_ms, topic)

    def _on_timer(self, now_ms: int, input: TimerFired) -> None:
        if input.token == ROUTES:
            self._out.append(SetTimer(ROUTES, self.config.route_poll_ms))
            for topic in sorted(self.routes.keys() | set(self.config.topics) | self._borrowed):
                self._ask_route(now_ms, topic)
        elif input.token == HEARTBEAT:
            self._out.append(SetTimer(HEARTBEAT, self.config.heartbeat_ms))
            self._beat(now_ms, sorted(set(self.addresses.values())))

    def _on_shutdown(self, now_ms: int, input: Shutdown) -> None:
        """Waits for the sends on their way, each bounded by its timeout, then says goodbye."""
        if not self.stopping:
            self.stopping = True
            self._leave_op = self._begin(Kind.LEAVE, self._who)
            self._check_leaving(now_ms)

    def _check_leaving(self, now_ms: int) -> None:
        if not self.stopping or self._leaving or self._open:
            return
        self._leaving = True
        self._out += (CancelTimer(ROUTES), CancelTimer(HEARTBEAT))
        ext = UnregisterClientHeader(
            self.config.client_id, producer_group=self.config.group
        ).to_ext()
        addresses = sorted(set(self.addresses.values()))
        self._unregistering = len(addresses)
        for address in addresses:
            command = Command(RequestCode.UNREGISTER_CLIENT, ext)
            self._request(
                now_ms, address, command, self.config.request_timeout_ms, self._unregistered
            )
        if not addresses:
            self._finish_leaving()

    def _unregistered(self, now_ms: int, answer: Command | None, reason: str) -> None:
        self._unregistering -= 1
        if not self._unregistering:
            self._finish_leaving()

    def _finish_leaving(self) -> None:
        self._out.append(End(self._leave_op, Outcome.OK, {}))
        self._out.append(Stopped())
        self.stopped = True

    # ------------------------------------------------------------ requests

    def _request(
        self, now_ms: int, address: Address | None, command: Command, timeout_ms: int, on_end: OnEnd
    ) -> None:
        if address is None:
            on_end(now_ms, None, "unreachable")
            return
        self._number += 1
        self._waiting[self._number] = on_end
        self._out.append(Request(self._number, address, command, timeout_ms))

    def _on_answered(self, now_ms: int, input: Answered) -> None:
        on_end = self._waiting.pop(input.token, None)
        if on_end is None:
            return
        try:
            on_end(now_ms, input.command, "")
        except ProtocolError:
            on_end(now_ms, None, "garbled")  # every ending reads the answer before it does anything

    def _on_failed(self, now_ms: int, input: Failed) -> None:
        on_end = self._waiting.pop(input.token, None)
        if on_end is not None:
            on_end(now_ms, None, input.reason)

    def _begin(
        self, kind: Kind, fields: dict[str, Any], rows: Sequence[dict[str, Any]] = ()
    ) -> int:
        self._number += 1
        self._out.append(Begin(self._number, kind, fields, rows))
        return self._number

    # ------------------------------------------------------------ routes and heartbeats

    def _ask_route(self, now_ms: int, topic: str, tried: int = 0) -> None:
        """Asks one name server after the other, beginning with the one that answered last.

        The next one is asked also when a topic is unknown: who was just started knows nothing yet.
        """
        at = (self._name_server + tried) % len(self.config.name_servers)
        self._ask_name_server(now_ms, topic, at, partial(self._route_answered, topic, tried))

    def _ask_name_server(self, now_ms: int, topic: str, at: int, then: OnEnd) -> None:
        def on_end(now_ms: int, answer: Command | None, reason: str) -> None:
            if answer is not None and answer.code == ResponseCode.SUCCESS:
                self._name_server = at
            then(now_ms, answer, reason)

        command = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteHeader(topic, True).to_ext())
        self._request(
            now_ms, self.config.name_servers[at], command, self.config.request_timeout_ms, on_end
        )

    def _route_answered(
        self, topic: str, tried: int, now_ms: int, answer: Command | None, reason: str
    ) -> None:
        unknown = answer is None or answer.code == ResponseCode.TOPIC_NOT_EXIST
        if unknown and tried + 1 < len(self.config.name_servers):
            self._ask_route(now_ms, topic, tried + 1)
            return
        if answer is None:
            pass  # what the last answer said stays true
        elif answer.code == ResponseCode.SUCCESS:
            route = TopicRoute.decode(answer.body)
            if self.routes.get(topic) != route:
                self._learn(now_ms, topic, route)
        elif (
            self.config.auto_create
            and topic in self._parked
            and answer.code == ResponseCode.TOPIC_NOT_EXIST
        ):
            self._ask_template(now_ms, topic)
            return
        self._unpark(now_ms, topic)

    def _ask_template(self, now_ms: int, topic: str, tried: int = 0) -> None:
        at = (self._name_server + tried) % len(self.config.name_servers)
        self._ask_name_server(
            now_ms, DEFAULT_TOPIC, at, partial(self._template_answered, topic, tried)
        )

    def _template_answered(
        self, topic: str, tried: int, now_ms: int, answer: Command | None, reason: str
    ) -> None:
        """The brokers that make topics on demand, with as many queues as a new topic gets there at most."""
        if answer is None or answer.code != ResponseCode.SUCCESS:
            if tried + 1 < len(self.config.name_servers):
                self._ask_template(now_ms, topic, tried + 1)
                return
        else:
            route = TopicRoute.decode(answer.body)
            makers = tuple(
                replace(item, write_queues=min(item.write_queues, self.config.new_topic_queues))
                for item in route.queues
                if item.perm & PERM_INHERIT
            )
            self._borrowed.add(topic)
            self._use(now_ms, topic, replace(route, queues=makers))
        self._unpark(now_ms, topic)

    def _unpark(self, now_ms: int, topic: str) -> None:
        for sending in self._parked.pop(topic, ()):
            self._try(now_ms, sending)

    def _learn(self, now_ms: int, topic: str, route: TopicRoute) -> None:
        self.routes[topic] = route
        self._borrowed.discard(topic)
        self._use(now_ms, topic, route)

    def _use(self, now_ms: int, topic: str, route: TopicRoute) -> None:
        self.queues[topic] = self.queues_of(topic, route)
        self.views[topic] = " ".join(
            [SELECTOR, *(f"{q.broker}/{q.queue_id}" for q in sorted(self.queues[topic]))]
        )
        for broker in route.brokers:
            if broker.master is not None:
                self.addresses[broker.broker] = broker.master
        self._beat(now_ms, sorted(set(self.addresses.values()) - self._beaten))

    def queues_of(self, topic: str, route: TopicRoute) -> list[Queue]:
        return writable_queues(topic, route)

    def _beat(self, now_ms: int, addresses: list[Address]) -> None:
        body = Heartbeat(self.config.client_id, producers=(self.config.group,)).encode()
        for address in addresses:
            self._beaten.add(address)
            command = Command(RequestCode.HEART_BEAT, body=body)
            self._request(
                now_ms,
                address,
                command,
                self.config.request_timeout_ms,
                partial(self._beat_ended, address),
            )

    def _beat_ended(
        self, address: Address, now_ms: int, answer: Command | None, reason: str
    ) -> None:
        if answer is None:
            self._beaten.discard(address)

    # ------------------------------------------------------------ sending

    def _on_send(self, now_ms: int, message: SendMessage) -> None:
        sending = self._sending(message)
        if self.stopping:
            refused = SendDone(
                message.token, Outcome.REFUSED, message_id=sending.message_id, reason=STOPPING
            )
            self._out.append(refused)
            return
        self._open.add(sending)
        if message.topic in self.queues:
            self._try(now_ms, sending)
        elif message.topic in self._parked:
            self._parked[message.topic].append(sending)
        else:
            self._parked[message.topic] = [sending]
            self._ask_route(now_ms, message.topic)

    def _sending(self, message: SendMessage) -> Sending:
        message_id = message.message_id
        if message_id is None:
            self._ids += 1
            message_id = f"{self.config.client_id}-{self._born_ms}-{self._ids}"
        properties = self._properties(message, message_id)
        more = tuple(self._sending(other) for other in message.more)
        hashes = (zlib.crc32(message.body), props_hash(own_properties(message.properties)))
        sending = Sending(message, message_id, properties, *hashes, more)
        over = self.config.compress_over_bytes
        if over is not None and len(message.body) >= over and not more:
            sending.packed = zlib.compress(message.body, self.config.compress_level)
        return sending

    def _properties(self, message: SendMessage, message_id: str) -> str:
        properties = {PROPERTY_UNIQ_KEY: message_id}
        if message.sharding_key is not None:
            properties[PROPERTY_SHARDING_KEY] = message.sharding_key
        if message.tags is not None:
            properties[PROPERTY_TAGS] = message.tags
        if message.key_seq is not None:
            properties[KEY_SEQ] = str(message.key_seq)
        if message.delay_level is not None:
            properties[PROPERTY_DELAY] = str(message.delay_level)
        if message.transaction is not None:
            properties[PROPERTY_TRANSACTION_PREPARED] = "true"
            properties[PROPERTY_PRODUCER_GROUP] = self.config.group
            properties[PROPERTY_CHECKED] = message.transaction.checked
        if message.keys is not None:
            properties[PROPERTY_KEYS] = message.keys
        for name, value in message.properties.items():
            properties.setdefault(name, value)
        return pack_properties(properties)

    def select(self, key: str, queues: Sequence[Queue]) -> Queue:
        """The key's queue. The remainder first, then its sign: the smallest hash has no positive twin in Java."""
        return queues[abs(java_hash(key)) % len(queues)]

    def next_in_turn(self, queues: Sequence[Queue], avoid: str | None) -> Queue:
        for _ in queues:
            self._turn += 1
            queue = queues[(self._turn - 1) % len(queues)]
            if queue.broker != avoid:
                return queue
        self._turn += 1
        return queues[(self._turn - 1) % len(queues)]

    def _try(self, now_ms: int, sending: Sending) -> None:
        message = sending.message
        queues = self.queues.get(message.topic)
        sending.attempt += 1
        why_none = "no route"
        queue = None
        try:
            queue = self._queue_for(now_ms, sending, queues) if queues else None
        except UsageError as error:  # a selector's
            why_none = str(error)
        sending.tried_ms = now_ms
        batch = (sending, *sending.more)
        rows = [self._row(part, queue, sending.attempt) for part in batch]
        places = [{**row, "value": place} for place, row in enumerate(rows)] if sending.more else ()
        sending.op = self._begin(Kind.SEND, rows[0], places)
        on_end = partial(self.sent, sending)
        if queue is None:
            self._out.append(
                End(sending.op, Outcome.REFUSED, {"detail": self._why(sending, why_none)})
            )
            self._done(now_ms, sending, Outcome.REFUSED, None, reason=why_none)
            return
        sending.last_broker = queue.broker
        header = SendHeader(
            producer_group=self.config.group,
            topic=message.topic,
            queue_id=queue.queue_id,
            born_timestamp=now_ms,
            properties=None if sending.more else sending.properties,
            reconsume_times=0,
            batch=bool(sending.more),
            sys_flag=(0 if message.transaction is None else SYS_PREPARED)
            | (0 if sending.packed is None else SYS_COMPRESSED),
        )
        if sending.more:
            parts = [
                BatchPart(part.message.body, unpack_properties(part.properties)) for part in batch
            ]
            command = Command(
                RequestCode.SEND_BATCH_MESSAGE, header.to_ext_v2(), encode_batch(parts)
            )
        else:
            body = message.body if sending.packed is None else sending.packed
            command = Command(RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), body)
        address = self.addresses.get(queue.broker)
        if message.oneway and address is not None:
            self._out.append(Oneway(address, replace(command, flag=FLAG_ONEWAY)))
            self._out.append(End(sending.op, Outcome.SENT, {}))
            self._done(now_ms, sending, Outcome.SENT, None, queue.queue_id)
        else:
            self._request(now_ms, address, command, self.config.send_timeout_ms, on_end)

    def _queue_for(self, now_ms: int, sending: Sending, queues: Sequence[Queue]) -> Queue:
        message = sending.message
        if message.selector is not None:
            return message.selector(message.sharding_key, queues)
        if message.sharding_key is not None:
            return self.select(message.sharding_key, queues)
        if self.config.avoid_faults:
            well = [queue for queue in queues if self._faults.is_available(now_ms, queue.broker)]
            return self.next_in_turn(well or queues, sending.last_broker)
        return self.next_in_turn(queues, sending.last_broker)

    def _row(self, sending: Sending, queue: Queue | None, attempt: int) -> dict[str, Any]:
        message = sending.message
        by_key = queue is not None and message.sharding_key is not None and message.selector is None
        return {
            "client_id": self.config.client_id,
            "topic": message.topic,
            "broker": queue.broker if queue else None,
            "queue_id": queue.queue_id if queue else None,
            "message_id": sending.message_id,
            "sharding_key": message.sharding_key,
            "key_seq": message.key_seq,
            "attempt": attempt,
            "body_hash": sending.body_hash,
            "props_hash": sending.props_hash,
            "tags": message.tags,
            "view": self.views[message.topic] if by_key else None,
            "delay_level": message.delay_level,
            "detail": None if message.transaction is None else HALF,
        }

    def sent(self, sending: Sending, now_ms: int, answer: Command | None, reason: str) -> None:
        if answer is not None and answer.code in STORED:
            stored = SendResponse.from_ext(answer.ext)
            self._watch(now_ms, sending, well=True)
            where: dict[str, Any] = {"code": answer.code, "queue_id": stored.queue_id}
            is_half = sending.message.transaction is not None
            # A half message has no place in its queue yet.
            first = {"value" if is_half else "queue_offset": stored.queue_offset}
            if sending.more:  # the answer tells the place of the first one only
                self._out.append(
                    End(sending.op, Outcome.OK, where, [first, *({} for _ in sending.more)])
                )
            else:
                self._out.append(End(sending.op, Outcome.OK, {**where, **first}))
            if is_half:
                self._half_stored(sending, stored, parse_offset_message_id(stored.msg_id)[1])
            place = (stored.queue_id, stored.queue_offset, stored.msg_id)
            self._done(now_ms, sending, Outcome.OK, answer.code, *place)
            return
        self._watch(now_ms, sending, well=False)
        if answer is None:
            outcome = Outcome.REFUSED if reason == "unreachable" else Outcome.UNKNOWN
            self._out.append(End(sending.op, outcome, {"detail": self._why(sending, reason)}))
            again = reason in RETRIED_FAILURES
        else:
            outcome = Outcome.REFUSED
            why = self._why(sending, answer.remark)
            self._out.append(End(sending.op, outcome, {"code": answer.code, "detail": why}))
            again = answer.code in RETRIED_CODES
        sending.doubt = sending.doubt or outcome is Outcome.UNKNOWN
        if again and sending.attempt < self.tries(sending.message):
            self._try(now_ms, sending)
        elif answer is None:
            self._done(now_ms, sending, outcome, None, reason=reason)
        else:
            self._done(now_ms, sending, outcome, answer.code, reason=answer.remark)

    def _watch(self, now_ms: int, sending: Sending, *, well: bool) -> None:
        """How long the broker took, or that it failed."""
        if self.config.avoid_faults and sending.last_broker is not None:
            self._faults.saw(
                now_ms, sending.last_broker, None if not well else now_ms - sending.tried_ms
            )

    # ------------------------------------------------------------ transactions

    def _half_stored(self, sending: Sending, stored: SendResponse, place_in_log: int) -> None:
        """The half message lies at the broker: the transaction runs, and the broker is told how it ended."""
        message, broker = sending.message, sending.last_broker
        address = self.addresses.get(broker or "")
        if message.transaction is None or address is None:
            return
        header = EndTransactionHeader(
            self.config.group,
            stored.queue_offset,
            place_in_log,
            STATES[message.transaction.ends],
            message.topic,
            msg_id=sending.message_id,
            transaction_id=stored.transaction_id,
        )
        where = {"topic": message.topic, "broker": broker, "queue_id": stored.queue_id}
        self._end_transaction(address, header, {**where, "message_id": sending.message_id})

    def _on_pushed(self, now_ms: int, input: Pushed) -> None:
        """A broker asks how a transaction ended that was begun by a producer of this group, whichever."""
        if input.command.code != RequestCode.CHECK_TRANSACTION_STATE or self.stopping:
            return
        try:
            asked = CheckTransactionHeader.from_ext(input.command.ext)
            (half,) = decode_all(input.command.body)
        except (ProtocolError, ValueError):
            return
        brokers = (
            name for name, address in sorted(self.addresses.items()) if address == input.address
        )
        fields = {
            "topic": half.topic,
            "broker": next(brokers, None),
            "queue_id": half.queue_id,
            "message_id": half.message_id,
        }
        number = half.properties.get(PROPERTY_TRANSACTION_CHECK_TIMES, "")
        attempt = int(number) if number.isdecimal() else None
        self._out.append(Note(Kind.CHECK, Outcome.OK, {**self._who, **fields, "attempt": attempt}))
        header = EndTransactionHeader(
            half.properties.get(PROPERTY_PRODUCER_GROUP, self.config.group),
            asked.tran_state_table_offset,
            asked.commit_log_offset,
            self.decide(half),
            half.topic,
            from_transaction_check=True,
            msg_id=asked.msg_id,
            transaction_id=asked.transaction_id,
        )
        self._end_transaction(input.address, header, {**fields, "view": "check"})

    def decide(self, half: StoredMessage) -> int:
        """How the transaction ended, as far as this producer can know; the message itself says what it knows."""
        return STATES.get(half.properties.get(PROPERTY_CHECKED, ""), EndTransactionHeader.UNKNOWN)

    def _end_transaction(
        self, address: Address, header: EndTransactionHeader, fields: dict[str, Any]
    ) -> None:
        state = {"value": header.commit_or_rollback}
        self._out.append(Note(Kind.END_TRANSACTION, Outcome.SENT, {**self._who, **fields, **state}))
        self._out.append(
            Oneway(address, Command(RequestCode.END_TRANSACTION, header.to_ext(), flag=FLAG_ONEWAY))
        )

    def _why(self, sending: Sending, reason: str | None) -> str | None:
        return reason if sending.message.transaction is None else f"{HALF}, {reason}"

    def tries(self, message: SendMessage) -> int:
        """How often a message may be sent: with a queue of its own only once, else a second copy could overtake."""
        once = message.sharding_key is not None or message.selector is not None or message.oneway
        return 1 if once else 1 + self.config.retries

    def _done(
        self,
        now_ms: int,
        sending: Sending,
        outcome: Outcome,
        code: int | None,
        queue_id: int | None = None,
        queue_offset: int | None = None,
        offset_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self._open.remove(sending)
        self._out.append(
            SendDone(
                sending.message.token,
                outcome,
                code,
                queue_id,
                queue_offset,
                sending.message_id,
                sending.last_broker,
                offset_id,
                reason,
                sending.doubt and outcome is not Outcome.OK,
            )
        )
        self._check_leaving(now_ms)
