"""A broker core with a clock that the test moves and connections that the test names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.core.io import (
    Closed,
    Effect,
    Input,
    Note,
    Opened,
    Received,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from reference_impl.protocol.bodies import (
    CLUSTERING,
    ConsumerData,
    Heartbeat,
    LockBatch,
    Subscription,
    decode_lock_answer,
)
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.headers import (
    CreateTopicHeader,
    EndTransactionHeader,
    Header,
    PullHeader,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    SendHeader,
    UpdateConsumerOffsetHeader,
)
from reference_impl.protocol.message import (
    StoredMessage,
    decode_all,
    pack_properties,
    parse_offset_message_id,
)
from specs.vocabulary import Queue

BORN_MS = 1_700_000_000_000


class Wire:
    """Calls one broker core as a client would. `now_ms` is its clock; timers fire in `pass_ms`."""

    def __init__(
        self,
        config: BrokerConfig,
        store: BrokerStore | None = None,
        broker_class: type[Broker] = Broker,
    ) -> None:
        self.config = config
        self.store = store or BrokerStore()
        self.broker_class = broker_class
        self.now_ms = BORN_MS
        self.pushed: list[tuple[Any, Command]] = []  # what was sent without having been asked for
        self.answers: dict[int, Command] = {}
        self.notes: list[Note] = []
        self.effects: list[Effect] = []
        self._opaque = 0
        self.boot()

    def boot(self) -> None:
        """Start a broker on the store; the second time it is a restart after a crash."""
        self.timers: dict[Any, int] = {}
        self.broker = self.broker_class(self.config, self.store)
        self.feed(Start())
        for conn in ("c1", "c2", "c3"):
            self.feed(Opened(conn, "127.0.0.1:4000"))

    def feed(self, event: Input) -> list[Effect]:
        self.effects = self.broker.handle(self.now_ms, event)
        for effect in self.effects:
            match effect:
                case Send(conn, command) if command.is_response:
                    self.answers[command.opaque] = command
                case Send(conn, command):
                    self.pushed.append((conn, command))
                case SetTimer(token, delay_ms):
                    self.timers[token] = self.now_ms + delay_ms
                case Note():
                    self.notes.append(effect)
                case _:
                    pass
        return self.effects

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass; every timer fires at its moment."""
        end_ms = self.now_ms + duration_ms
        while self.timers and min(self.timers.values()) <= end_ms:
            token = min(self.timers, key=lambda t: (self.timers[t], str(t)))
            self.now_ms = max(self.now_ms, self.timers.pop(token))
            self.feed(TimerFired(token))
        self.now_ms = end_ms

    def ask(
        self,
        code: int,
        header: Header | Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        conn: str = "c1",
        flag: int = 0,
        version: int = 399,
    ) -> int:
        """Send a request; its opaque, under which the answer will lie in `answers`."""
        self._opaque += 1
        ext = header.to_ext() if isinstance(header, Header) else dict(header or {})
        self.feed(Received(conn, Command(code, ext, body, self._opaque, flag, version=version)))
        return self._opaque

    def call(
        self,
        code: int,
        header: Header | Mapping[str, str] | None = None,
        body: bytes = b"",
        **how: Any,
    ) -> Command:
        """Send a request and take its answer, which must come at once."""
        return self.answers[self.ask(code, header, body, **how)]

    # -------------------------------------------------------- the requests of ordered messaging

    def topic(self, name: str = "orders", queues: int = 4) -> None:
        assert (
            self.call(
                RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader(name, queues, queues)
            ).code
            == 0
        )

    def lock(
        self,
        client: str,
        *queues: int,
        group: str = "billing",
        topic: str = "orders",
        broker: str = "b0",
    ) -> list[int]:
        """The queue numbers granted."""
        body = LockBatch(group, client, tuple(Queue(topic, broker, q) for q in queues)).encode()
        answer = self.call(RequestCode.LOCK_BATCH_MQ, body=body)
        assert answer.code == 0
        return sorted(queue.queue_id for queue in decode_lock_answer(answer.body))

    def unlock(
        self, client: str, *queues: int, group: str = "billing", topic: str = "orders"
    ) -> None:
        body = LockBatch(group, client, tuple(Queue(topic, "b0", q) for q in queues)).encode()
        assert self.call(RequestCode.UNLOCK_BATCH_MQ, body=body).code == 0

    def send(
        self,
        body: bytes = b"m",
        *,
        topic: str = "orders",
        queue_id: int = 0,
        properties: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Command:
        header = SendHeader(
            "P", topic, queue_id, BORN_MS, properties=pack_properties(properties or {}), **fields
        )
        return self.call(RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), body)

    def send_half(self, message_id: str = "m1", *, group: str = "shop") -> Command:
        """A half message of the group, meant for orders/b0/0."""
        properties = {"UNIQ_KEY": message_id, "TRAN_MSG": "true", "PGROUP": group}
        return self.send(message_id.encode(), properties=properties, sys_flag=4)

    def end_half(
        self, stored: Command, state: int, *, group: str = "shop", offset: int | None = None
    ) -> Command | None:
        """Say how the transaction ended: 8 commit, 12 rollback, 0 unknown."""
        place = parse_offset_message_id(stored.ext["msgId"])[1]
        table_offset = int(stored.ext["queueOffset"]) if offset is None else offset
        opaque = self.ask(
            RequestCode.END_TRANSACTION, EndTransactionHeader(group, table_offset, place, state)
        )
        return self.answers.get(opaque)

    def questions(self) -> list[tuple[Any, str]]:
        """Whom the broker asked about a half message since the last look, and how often it was asked about by then."""
        asked = [
            each for each in self.pushed if each[1].code == RequestCode.CHECK_TRANSACTION_STATE
        ]
        self.pushed = [each for each in self.pushed if each not in asked]
        return [
            (conn, decode_all(command.body)[0].properties["TRANSACTION_CHECK_TIMES"])
            for conn, command in asked
        ]

    def pull(
        self,
        offset: int,
        *,
        topic: str = "orders",
        queue_id: int = 0,
        group: str = "billing",
        sys_flag: int = 4,
        **fields: Any,
    ) -> Command:
        header = PullHeader(
            group, topic, queue_id, offset, sys_flag=sys_flag, subscription="*", **fields
        )
        return self.call(RequestCode.PULL_MESSAGE, header)

    def park(
        self, offset: int, *, wait_ms: int = 15_000, conn: str = "c1", subscription: str = "*"
    ) -> int:
        header = PullHeader(
            "billing",
            "orders",
            0,
            offset,
            sys_flag=6,
            suspend_timeout_millis=wait_ms,
            subscription=subscription,
        )
        return self.ask(RequestCode.PULL_MESSAGE, header, conn=conn)

    def messages(self, topic: str, queue_id: int = 0) -> list[StoredMessage]:
        """Everything that lies in a queue, read through the protocol."""
        found: list[StoredMessage] = []
        answer = self.pull(0, topic=topic, queue_id=queue_id, max_msg_nums=1000)
        while answer.code == ResponseCode.SUCCESS:
            found += decode_all(answer.body)
            answer = self.pull(
                int(answer.ext["nextBeginOffset"]),
                topic=topic,
                queue_id=queue_id,
                max_msg_nums=1000,
            )
        return found

    def commit(
        self,
        offset: int,
        *,
        queue_id: int = 0,
        group: str = "billing",
        topic: str = "orders",
        **how: Any,
    ) -> Command:
        header = UpdateConsumerOffsetHeader(group, topic, queue_id, offset)
        return self.call(RequestCode.UPDATE_CONSUMER_OFFSET, header, **how)

    def reset(
        self,
        offset: int | None,
        *,
        queue_id: int | None = None,
        group: str = "billing",
        timestamp: int = -1,
        topic: str = "orders",
        is_force: bool = False,
    ) -> Command:
        """As an operator. Without a queue: all of the topic; without an offset: by the time in ms."""
        header = ResetOffsetHeader(topic, group, timestamp, is_force, queue_id, offset)
        return self.call(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)

    def fetch(
        self,
        *,
        queue_id: int = 0,
        group: str = "billing",
        topic: str = "orders",
        zero: bool | None = None,
    ) -> tuple[int, int | None]:
        """(code, offset)."""
        header = QueryConsumerOffsetHeader(group, topic, queue_id, zero)
        answer = self.call(RequestCode.QUERY_CONSUMER_OFFSET, header)
        offset = answer.ext.get("offset")
        return answer.code, None if offset is None else int(offset)

    def join(
        self,
        client: str,
        conn: str,
        *,
        group: str = "billing",
        topics: tuple[str, ...] = ("orders",),
        subscription: str = "*",
        message_model: str = CLUSTERING,
    ) -> Command:
        subscriptions = tuple(Subscription.of(topic, subscription) for topic in topics)
        consumer = ConsumerData(group, message_model=message_model, subscriptions=subscriptions)
        return self.call(
            RequestCode.HEART_BEAT, body=Heartbeat(client, (), (consumer,)).encode(), conn=conn
        )

    def close(self, conn: str) -> None:
        self.feed(Closed(conn))

    def notices(self) -> list[Any]:
        """The connections that got a change notice since the last look."""
        seen = [
            conn
            for conn, command in self.pushed
            if command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        ]
        assert all(command.flag & FLAG_ONEWAY for _, command in self.pushed)
        self.pushed.clear()
        return seen


MakeWire = Callable[..., Wire]


@pytest.fixture
def make_wire() -> MakeWire:
    """A broker by configuration, with topic `orders` of four queues."""

    def make(
        dialect: str = "5.x",
        *,
        store: BrokerStore | None = None,
        broker_class: type[Broker] = Broker,
        **config: Any,
    ) -> Wire:
        wire = Wire(BrokerConfig(dialect=dialect, **config), store, broker_class)
        wire.topic()
        return wire

    return make


@pytest.fixture
def wire(make_wire: MakeWire) -> Wire:
    return make_wire()
