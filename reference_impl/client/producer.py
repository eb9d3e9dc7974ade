"""Sending messages.

    async with Producer("127.0.0.1:9876") as producer:
        result = await producer.send("orders", b"paid", key="customer-7")

| call | returns when |
|---|---|
| `await send(...)` | the broker has acknowledged the message |
| `submit(...)` | at once, with an awaitable; messages go out in the order of the calls |
| `await send_oneway(...)` | the message was handed to the network; nobody will say whether it arrived |
| `await send_batch(...)` | the broker has acknowledged all of them, as one request to one queue |

Messages of one `key` go to one queue, in the order in which they are sent. To keep that order, await each send before
the next of the same key: of two that are on their way at once the first may fail and the second not. Without a key the
queues take turns. A message with a key, a `selector` or a `queue` is tried once; any other is tried again elsewhere.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from reference_impl.client.errors import NotReachable, SendFailed, SendRefused, SendUnknown
from reference_impl.client.identity import MessageIds, new_client_id
from reference_impl.client.message import KEY_SEPARATOR
from reference_impl.client.names import as_bytes, check_properties, name_server_list, topic_name
from reference_impl.core.io import Selector, SendDone, SendMessage
from reference_impl.core.producer import Producer as ProducerCore
from reference_impl.core.producer import ProducerConfig
from reference_impl.core.selectors import to_queue
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import NO_EXT
from reference_impl.protocol.message import MAX_BODY_BYTES
from reference_impl.shell.clock import WallClock
from reference_impl.shell.node import ClientNode
from reference_impl.shell.recording import Recorder
from specs.errors import UsageError
from specs.vocabulary import Outcome, Queue

DEFAULT_GROUP = "inorder-producers"
COMPRESS_OVER_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message of a batch; the fields are those of `Producer.send`."""

    body: bytes | str
    tags: str | None = None
    keys: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=lambda: NO_EXT)


@dataclass(frozen=True, slots=True)
class SendResult:
    """Where the message lies. offset: its place in the queue; of a batch, the first one's.

    code: SUCCESS, or one of those by which the broker says that it is stored with less safety than declared: it was
    not on disk, or not at the replica, in time. offset_id: the broker's own id of the message. offset is None and
    offset_id empty where the broker was not asked (one way).
    """

    message_id: str
    queue: Queue
    offset: int | None
    code: ResponseCode = ResponseCode.SUCCESS
    offset_id: str = ""

    @property
    def is_safe(self) -> bool:
        """As safe as the broker was told to keep it."""
        return self.code is ResponseCode.SUCCESS


class Producer:
    """An asyncio producer; many sends may be open at a time. To be used inside one running event loop.

    name_servers: `host:port`, several in a sequence or with `;` between them. retries: further tries of a message
    whose queue is free to choose. timeout_s: of each try. compress_over_bytes: bodies of that size and more travel
    compressed (zlib), None for none. avoid_faults: brokers that were slow or failed are left alone for a while.
    create_topics: a topic that does not exist is sent to a broker that makes it. topics: whose routes to ask for at
    once; all others are asked for at their first message. recorder: is told each operation, for a history.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str = DEFAULT_GROUP,
        topics: Sequence[str] = (),
        retries: int = 2,
        timeout_s: float = 3.0,
        compress_over_bytes: int | None = COMPRESS_OVER_BYTES,
        avoid_faults: bool = False,
        create_topics: bool = True,
        client_id: str | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        if retries < 0 or timeout_s <= 0:
            raise UsageError("A producer needs retries of 0 or more, and a timeout above 0 s.")
        self.client_id = client_id or new_client_id()
        self._config = ProducerConfig(
            self.client_id,
            group,
            name_server_list(name_servers),
            tuple(map(topic_name, topics)),
            retries=retries,
            send_timeout_ms=max(1, round(timeout_s * 1000)),
            avoid_faults=avoid_faults,
            compress_over_bytes=compress_over_bytes,
            auto_create=create_topics,
        )
        self._recorder = recorder
        self._clock = WallClock()
        self._ids = MessageIds()
        self._tokens = itertools.count(1)
        self._node: ClientNode | None = None
        self._is_stopped = False

    async def start(self) -> Self:
        """Begin; `async with` does it. Returns at once: connections are made when they are needed."""
        if self._node is not None:
            raise UsageError("A producer is started once; make another.")
        self._node = ClientNode(
            ProducerCore(self._config), clock=self._clock, recorder=self._recorder
        )
        self._node.start()
        return self

    async def stop(self) -> None:
        """Take no more, wait for the sends that are open (each has its timeout), say goodbye to the brokers."""
        if self._node is not None and not self._is_stopped:
            await self._node.shutdown()
            self._is_stopped = True

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    # ------------------------------------------------------------ sending

    async def send(
        self,
        topic: str,
        body: bytes | str,
        *,
        key: str | None = None,
        tags: str | None = None,
        keys: Sequence[str] = (),
        properties: Mapping[str, str] = NO_EXT,
        delay_level: int | None = None,
        queue: int | None = None,
        selector: Selector | None = None,
    ) -> SendResult:
        """Send one message and wait for the broker's word.

        body: bytes, or text that goes as UTF-8; not empty. key: the sharding key, whose messages stay in order.
        tags: one word by which groups may filter. keys: words to search by. properties: your own. delay_level: the
        message is not seen before the broker's delay of that level (1 is the first). queue: always that number.
        selector: chooses the queue, see `by_hash`, `by_random`, `to_queue`.
        Raises SendRefused, NotReachable, SendUnknown, UsageError: see `errors`.
        """
        message = self._message(
            topic, body, key, tags, keys, properties, delay_level, queue, selector
        )
        return await self._sent(message)

    def submit(
        self,
        topic: str,
        body: bytes | str,
        *,
        key: str | None = None,
        tags: str | None = None,
        keys: Sequence[str] = (),
        properties: Mapping[str, str] = NO_EXT,
        delay_level: int | None = None,
        queue: int | None = None,
        selector: Selector | None = None,
    ) -> asyncio.Task[SendResult]:
        """As `send`, without waiting: the message is on its way when this returns, and the task has its result."""
        message = self._message(
            topic, body, key, tags, keys, properties, delay_level, queue, selector
        )
        return asyncio.get_running_loop().create_task(
            _result(message.topic, self._running.submit(message))
        )

    async def send_oneway(
        self,
        topic: str,
        body: bytes | str,
        *,
        key: str | None = None,
        tags: str | None = None,
        keys: Sequence[str] = (),
        properties: Mapping[str, str] = NO_EXT,
        queue: int | None = None,
        selector: Selector | None = None,
    ) -> SendResult:
        """Send and ask for no answer: tried once, and lost without a word when the connection breaks.

        A broker may store what is sent after it first: what must stay in order is sent with `send`.
        Raises NotReachable when no broker is known for the topic.
        """
        return await self._sent(
            self._message(
                topic, body, key, tags, keys, properties, None, queue, selector, oneway=True
            )
        )

    async def send_batch(
        self,
        topic: str,
        messages: Iterable[bytes | str | Outgoing],
        *,
        key: str | None = None,
        queue: int | None = None,
        selector: Selector | None = None,
    ) -> SendResult:
        """Send several in one request: all are stored, one behind the other in one queue, or none.

        key: of all of them. Together at most 4 MiB; they are not compressed. Raises as `send` does.
        """
        parts = [item if isinstance(item, Outgoing) else Outgoing(item) for item in messages]
        if not parts:
            raise UsageError("A batch needs at least one message.")
        made = [
            self._message(
                topic, part.body, key, part.tags, part.keys, part.properties, None, queue, selector
            )
            for part in parts
        ]
        size = sum(len(message.body) for message in made)
        if size > MAX_BODY_BYTES:
            raise UsageError(
                f"The batch has {size} bytes; {MAX_BODY_BYTES} are allowed: send it in parts."
            )
        first, *more = made
        if not more:
            return await self._sent(first)
        return await self._sent(
            SendMessage(
                first.token,
                topic,
                first.body,
                key,
                None,
                first.tags,
                first.message_id,
                more=tuple(more),
                keys=first.keys,
                properties=first.properties,
                selector=first.selector,
            )
        )

    # ------------------------------------------------------------ inside

    @property
    def _running(self) -> ClientNode:
        if self._node is None:
            raise UsageError(
                "The producer is not started: use it in `async with Producer(...) as producer:`."
            )
        if self._is_stopped:
            raise UsageError("The producer is stopped: make another.")
        return self._node

    async def _sent(self, message: SendMessage) -> SendResult:
        return await _result(message.topic, self._running.submit(message))

    def _message(
        self,
        topic: str,
        body: bytes | str,
        key: str | None,
        tags: str | None,
        keys: Sequence[str],
        properties: Mapping[str, str],
        delay_level: int | None,
        queue: int | None,
        selector: Selector | None,
        *,
        oneway: bool = False,
    ) -> SendMessage:
        if queue is not None and selector is not None:
            raise UsageError("A message goes to a queue or to what a selector chooses, not both.")
        if isinstance(keys, str):
            raise UsageError("keys is a sequence of words; for one, write keys=[word].")
        raw = as_bytes(body)
        if not raw:
            raise UsageError("A message needs a body: RocketMQ knows no empty ones.")
        if len(raw) > MAX_BODY_BYTES:
            raise UsageError(f"The body has {len(raw)} bytes; {MAX_BODY_BYTES} are allowed.")
        if any(not word or KEY_SEPARATOR in word for word in keys):
            raise UsageError("Each of keys is one word: not empty, and without blanks.")
        check_properties(
            {"key": key or "", "tags": tags or "", "keys": KEY_SEPARATOR.join(keys)}, properties
        )
        if queue is not None:
            selector = to_queue(queue)
        elif selector is not None:
            selector = _checked(selector)
        return SendMessage(
            next(self._tokens),
            topic_name(topic),
            raw,
            key,
            None,
            tags,
            self._ids.new(self._clock.now_ms()),
            delay_level,
            keys=KEY_SEPARATOR.join(keys) or None,
            properties=dict(properties),
            selector=selector,
            oneway=oneway,
        )


def _checked(selector: Selector) -> Selector:
    """A selector of the caller's: what it does wrong is a UsageError, and no fault of the producer."""

    def select(key: str | None, queues: Sequence[Queue]) -> Queue:
        try:
            chosen = selector(key, queues)
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"The selector raised {error!r}.") from error
        if chosen not in queues:
            raise UsageError(
                f"The selector returned {chosen!r}, which is none of the topic's queues."
            )
        return chosen

    return select


async def _result(topic: str, ended: Awaitable[SendDone]) -> SendResult:
    done = await ended
    if done.outcome in (Outcome.OK, Outcome.SENT):
        return SendResult(
            done.message_id or "",
            Queue(topic, done.broker or "", done.queue_id if done.queue_id is not None else -1),
            done.queue_offset,
            ResponseCode(done.code or 0),
            done.offset_id or "",
        )
    raise _failure(topic, done)


def _failure(topic: str, done: SendDone) -> SendFailed | UsageError:
    if done.code is not None:
        return SendRefused(topic, done.message_id, done.code, done.reason, maybe_stored=done.doubt)
    if done.outcome is Outcome.UNKNOWN:
        sentence = f"No answer to a message for {topic} ({done.reason}): it may be stored, or not."
        return SendUnknown(sentence, topic, done.message_id, maybe_stored=True)
    why = {
        "no route": "no name server knows a queue of that topic that can be written: create it first",
        "unreachable": "its broker can't be reached",
        "stopping": "the producer is being stopped",
    }.get(done.reason or "")
    if why is None:
        return UsageError(done.reason)  # a selector's words
    sentence = f"A message for {topic} was not sent: {why}."
    return NotReachable(sentence, topic, done.message_id, maybe_stored=done.doubt)
