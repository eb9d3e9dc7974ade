"""Receiving messages: consumers that call a listener.

    def listen(message: Message) -> None:
        print(message.key, message.text)

    async with OrderlyConsumer("127.0.0.1:9876", group="billing", topics="orders", listener=listen) as consumer:
        await consumer.run_until_signal()

| consumer | its listener is called |
|---|---|
| `OrderlyConsumer` | one call per queue at a time, in order; what must wait holds up its queue |
| `KeyOrderedConsumer` | one call per sharding key at a time, in order; what must wait holds up its key only |
| `ConcurrentConsumer` | as soon as a thread is free, in no order; what must wait returns by the retry topic |
| `BroadcastConsumer` | as the concurrent one, for every message in every member; offsets in a local file |

All of them deliver at least once: after a crash, a rebalance or a lost answer a message can come a second time. See
`idempotence` for a helper. A listener is a plain function, which runs in a thread, or an `async` one, which runs in the
event loop; what it returns is described in `results`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypedDict, Unpack

from reference_impl.client.identity import new_client_id
from reference_impl.client.message import Batch, Message
from reference_impl.client.names import group_name, name_server_list, subscription
from reference_impl.client.offset_file import OffsetsOnDisk
from reference_impl.client.results import Result, Suspend
from reference_impl.core.allocation import STRATEGIES, Strategy, strategy
from reference_impl.core.consumer import broadcast, concurrent, key_ordered, orderly
from reference_impl.core.consumer.config import NO_LIMIT, ConsumerConfig
from reference_impl.core.consumer.consumer import Consumer
from reference_impl.protocol.bodies import BROADCASTING
from reference_impl.protocol.message import StoredMessage
from reference_impl.shell.node import ClientNode, ListenerContext
from reference_impl.shell.node import Listener as NodeListener
from reference_impl.shell.recording import NoRecorder, Recorder
from specs.errors import UsageError
from specs.vocabulary import Kind, Outcome, Queue

log = logging.getLogger("inorder.client")

Listener: TypeAlias = Callable[[Message], Any]
"""Gets one message; returns, or is a coroutine that returns, what `results` allows."""
BatchListener: TypeAlias = Callable[[Batch], Any]
"""Gets several messages of one queue; their result is one for all of them."""
Start: TypeAlias = Literal["first", "last"] | datetime
"""Where a queue begins of which the group has stored no offset: its oldest message, its end, or a moment."""
Topics: TypeAlias = str | Sequence[str] | Mapping[str, str]
"""A topic, several, or topics with the tags that are wanted: `{"orders": "red || blue"}`."""

AGAIN = "The message comes again."


class Tuning(TypedDict, total=False):
    """What seldom needs another value than RocketMQ's own. All in ms but the last three.

    client_lease_ms: an orderly consumer's grant is expired when it is older. long_poll_ms: how long a broker keeps a
    pull that finds nothing. continuous_ms: how long one queue may keep a thread. shutdown_wait_ms: for how long a
    shutdown waits for running listeners. reset_wait_ms: how long this member waits for them when an operator resets
    the group's offset and the broker leaves that to its clients (before 5.2). pull_batch: messages of one pull at most.
    pull_threshold: how many fetched messages of one queue may wait here. pull_flow_control_ms: when there are more, the
    next pull comes so much later. span_max: how far apart their offsets may be.
    """

    client_lease_ms: int
    lock_first_ms: int
    lock_interval_ms: int
    rebalance_interval_ms: int
    rebalance_min_ms: int
    rebalance_retry_ms: int
    persist_first_ms: int
    persist_interval_ms: int
    heartbeat_ms: int
    route_poll_ms: int
    route_retry_ms: int
    request_timeout_ms: int
    pull_timeout_ms: int
    pull_retry_ms: int
    pull_flow_control_ms: int
    long_poll_ms: int
    continuous_ms: int
    shutdown_wait_ms: int
    reset_wait_ms: int
    send_back_retry_ms: int
    pull_batch: int
    pull_threshold: int
    span_max: int


class Member(ABC):
    """What all consumers have in common: a member of a group, from `start` to `stop`."""

    _mode: ClassVar[str] = "concurrent"
    _model: ClassVar[str] = "CLUSTERING"
    _core_class: ClassVar[type[Consumer]] = concurrent.ConcurrentConsumer

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        topics: Topics,
        start: Start,
        batch: int,
        threads: int,
        max_retries: int | None,
        suspend_ms: int,
        share_by: str | Strategy,
        client_id: str | None,
        recorder: Recorder | None,
        tuning: Tuning,
    ) -> None:
        self.client_id = client_id or new_client_id()
        self.group = group_name(group)
        self._share_by = strategy(share_by) if isinstance(share_by, str) else share_by
        self._config = ConsumerConfig(
            self.client_id,
            group,
            subscription(topics),
            name_server_list(name_servers),
            mode=self._mode,
            message_model=self._model,
            consume_from="timestamp" if isinstance(start, datetime) else start,
            consume_from_timestamp_ms=round(start.timestamp() * 1000)
            if isinstance(start, datetime)
            else None,
            batch=batch,
            threads=threads,
            max_reconsume_times=NO_LIMIT if max_retries is None else max_retries,
            suspend_ms=suspend_ms,
            **tuning,
        )
        self._watch = _Watch(recorder or NoRecorder())
        self._core: Consumer | None = None
        self._node: ClientNode | None = None

    @property
    def queues(self) -> tuple[Queue, ...]:
        """The queues that are this member's now, without the group's retry topic."""
        if self._core is None:
            return ()
        return tuple(
            sorted(queue for queue in self._core.lanes if queue.topic in self._config.topics)
        )

    async def start(self) -> Self:
        """Join the group; `async with` does it. Returns at once: `ready` waits for the first queues."""
        if self._node is not None:
            raise UsageError("A consumer is started once; make another.")
        core = self._make_core()
        core.rebalance.allocate = self._share_by
        self._core = core
        self._node = ClientNode(
            core, self._node_listener(), threads=self._config.threads, recorder=self._watch
        )
        self._node.start()
        return self

    async def ready(self, timeout_s: float = 30.0) -> Self:
        """Wait until this member works on at least one queue. TimeoutError when it gets none in time."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self.queues:
                    await self._watch.next_change()
        except TimeoutError:
            raise TimeoutError(
                f"{self.client_id} got no queue of {', '.join(sorted(self._config.topics))} within {timeout_s:g} s: is "
                "the topic created, and are there fewer members than queues?"
            ) from None
        return self

    async def stop(self) -> None:
        """Leave in good order: no new call, wait for the running ones, store offsets, give the queues back.

        Raises BodyFailed when anything of the library's own failed since the start.
        """
        if self._node is not None:
            await self._node.shutdown()

    async def run_until_signal(self, *signals: signal.Signals) -> None:
        """Return when the process gets SIGINT or SIGTERM (or one of those named): for a worker's main."""
        told = asyncio.Event()
        loop = asyncio.get_running_loop()
        chosen = signals or (signal.SIGINT, signal.SIGTERM)
        for number in chosen:
            loop.add_signal_handler(number, told.set)
        try:
            await told.wait()
        finally:
            for number in chosen:
                loop.remove_signal_handler(number)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def _make_core(self) -> Consumer:
        return self._core_class(self._config)

    @abstractmethod
    def _node_listener(self) -> NodeListener:
        """What the core's calls go to."""


class PushConsumer(Member):
    """A member whose listener is called.

    Exactly one of listener (gets a `Message`) and batch_listener (gets a `Batch` of at most `batch` messages).
    start: where a queue begins of which the group has stored nothing; RocketMQ's own default is its end. threads: how
    many calls may run at a time. max_retries: how often a message comes again before it goes to the dead letters; None
    for no limit (16 for a concurrent consumer). suspend_ms: how long what must come again waits. share_by: the name of
    a strategy (AVG, CIRCLE, CONSISTENT_HASH) or one of `reference_impl.client.allocation`; all members need the same.
    recorder: is told each operation, for a history.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        topics: Topics,
        listener: Listener | None = None,
        batch_listener: BatchListener | None = None,
        start: Start = "last",
        batch: int | None = None,
        threads: int = 20,
        max_retries: int | None = None,
        suspend_ms: int = 1_000,
        share_by: str | Strategy = "AVG",
        client_id: str | None = None,
        recorder: Recorder | None = None,
        **tuning: Unpack[Tuning],
    ) -> None:
        if (listener is None) == (batch_listener is None):
            raise UsageError("A consumer needs a listener or a batch_listener, and not both.")
        if batch is not None and batch_listener is None:
            raise UsageError(
                "batch goes with a batch_listener; a listener gets one message at a time."
            )
        super().__init__(
            name_servers,
            group=group,
            topics=topics,
            start=start,
            batch=(16 if batch is None else batch) if batch_listener is not None else 1,
            threads=threads,
            max_retries=max_retries,
            suspend_ms=suspend_ms,
            share_by=share_by,
            client_id=client_id,
            recorder=recorder,
            tuning=tuning,
        )
        self._listener = listener
        self._batch_listener = batch_listener
        self._auto_commit = True

    def _node_listener(self) -> NodeListener:
        listener, batch_listener = self._listener, self._batch_listener

        def call(stored: Sequence[StoredMessage], context: ListenerContext) -> Any:
            context.auto_commit = self._auto_commit
            batch = batch_of(stored, context)
            if listener is not None:
                return listener(batch[0])
            assert batch_listener is not None, "the constructor asks for one of the two"
            return batch_listener(batch)

        def plain(stored: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
            try:
                return self._outcome(call(stored, context), context)
            except Exception as error:
                return _raised(error, context)

        async def awaited(stored: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
            try:
                return self._outcome(await call(stored, context), context)
            except Exception as error:
                return _raised(error, context)

        return awaited if _is_async(listener or batch_listener) else plain

    def _outcome(self, result: object, context: ListenerContext) -> Outcome:
        match result:
            case None | True | Result.SUCCESS:
                return Outcome.SUCCESS
            case False | Result.SUSPEND:
                return Outcome.SUSPEND
            case Suspend():
                return _suspended(result, context)
            case Result.COMMIT | Result.ROLLBACK if not self._auto_commit:
                return Outcome(result.value)
            case Result():
                raise UsageError(
                    f"A listener returns {result} only with auto_commit=False of an OrderlyConsumer."
                )
            case _ if inspect.iscoroutine(result):
                result.close()
                raise UsageError(
                    "The listener returned a coroutine: make the listener itself an async function."
                )
            case _:
                raise UsageError(
                    f"A listener returned {result!r}; see reference_impl.client.results for what it may."
                )


def _is_async(listener: Callable[..., object] | None) -> bool:
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
        type(listener).__call__
    )


def batch_of(stored: Sequence[StoredMessage], context: ListenerContext) -> Batch:
    queue = context.lane.queue
    pairs = zip(stored, context.delivery, strict=True)
    return Batch(queue, [Message.of(message, queue, attempt) for message, attempt in pairs])


def _suspended(word: Suspend, context: ListenerContext) -> Outcome:
    context.suspend_ms = word.ms
    context.delay_level = word.delay_level
    return Outcome.SUSPEND


def _raised(error: Exception, context: ListenerContext) -> Outcome:
    if isinstance(error, Suspend):
        return _suspended(error, context)
    log.error("The listener failed at a message of %s. %s", context.lane, AGAIN, exc_info=error)
    raise error


class OrderlyConsumer(PushConsumer):
    """One call per queue at a time, in order, under a lease of the broker's.

    auto_commit False: a listener's SUCCESS moves no offset; `Result.COMMIT` finishes everything since the last one,
    `Result.ROLLBACK` gives all of it again.
    """

    _mode: ClassVar[str] = "orderly"
    _core_class: ClassVar[type[Consumer]] = orderly.OrderlyConsumer

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        topics: Topics,
        listener: Listener | None = None,
        batch_listener: BatchListener | None = None,
        start: Start = "last",
        batch: int | None = None,
        threads: int = 20,
        max_retries: int | None = None,
        suspend_ms: int = 1_000,
        share_by: str | Strategy = "AVG",
        auto_commit: bool = True,
        client_id: str | None = None,
        recorder: Recorder | None = None,
        **tuning: Unpack[Tuning],
    ) -> None:
        super().__init__(
            name_servers,
            group=group,
            topics=topics,
            listener=listener,
            batch_listener=batch_listener,
            start=start,
            batch=batch,
            threads=threads,
            max_retries=max_retries,
            suspend_ms=suspend_ms,
            share_by=share_by,
            client_id=client_id,
            recorder=recorder,
            **tuning,
        )
        self._auto_commit = auto_commit


class KeyOrderedConsumer(PushConsumer):
    """One call per sharding key at a time, in order; keys side by side; messages without a key in no order.

    During a rebalance two members may work on one queue for a moment: there is no lease.
    """

    _mode: ClassVar[str] = "key_ordered"
    _core_class: ClassVar[type[Consumer]] = key_ordered.KeyOrderedConsumer


class ConcurrentConsumer(PushConsumer):
    """Calls as soon as a thread is free, in no order. A message that must come again returns by the retry topic."""


class BroadcastConsumer(PushConsumer):
    """Every member gets every message. What fails is logged and does not come again: another try would reach everybody.

    offsets: the file in which this member writes down how far it is, made when missing. It belongs to one running
    consumer. The last five seconds before a crash come again.
    """

    _model: ClassVar[str] = BROADCASTING

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        topics: Topics,
        offsets: str | Path,
        listener: Listener | None = None,
        batch_listener: BatchListener | None = None,
        start: Start = "last",
        batch: int | None = None,
        threads: int = 20,
        client_id: str | None = None,
        recorder: Recorder | None = None,
        **tuning: Unpack[Tuning],
    ) -> None:
        super().__init__(
            name_servers,
            group=group,
            topics=topics,
            listener=listener,
            batch_listener=batch_listener,
            start=start,
            batch=batch,
            threads=threads,
            client_id=client_id,
            recorder=recorder,
            **tuning,
        )
        self._path = Path(offsets)
        self._offsets: OffsetsOnDisk | None = None

    def _make_core(self) -> Consumer:
        self._offsets = OffsetsOnDisk(self._path, self.group)
        return broadcast.BroadcastConsumer(self._config, self._offsets)

    async def start(self) -> Self:
        try:
            return await super().start()
        except BaseException:
            self._release()
            raise

    async def stop(self) -> None:
        try:
            await super().stop()
        finally:
            self._release()

    def _release(self) -> None:
        if self._offsets is not None:
            self._offsets.close()


class _Watch:
    """Passes on what the core says for the recorder, and wakes who waits for a change of the queues."""

    def __init__(self, inner: Recorder) -> None:
        self._inner = inner
        self._changed = asyncio.Event()

    async def next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def begin(
        self, op: Hashable, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        self._inner.begin(op, kind, fields, rows)

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        self._inner.end(op, outcome, fields, rows)

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None:
        if kind in (Kind.ADD, Kind.DROP):
            self._changed.set()
        self._inner.note(kind, outcome, fields)


__all__ = [
    "STRATEGIES",
    "BatchListener",
    "BroadcastConsumer",
    "ConcurrentConsumer",
    "KeyOrderedConsumer",
    "Listener",
    "OrderlyConsumer",
    "Tuning",
]
