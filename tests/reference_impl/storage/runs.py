"""Small runs of a broker on a simulated disk, and what must be there after the power failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reference_impl.core.broker import Broker, BrokerConfig
from reference_impl.core.broker.log import BrokerStore
from reference_impl.core.io import (
    Effect,
    Flush,
    Flushed,
    Input,
    Opened,
    Received,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from reference_impl.protocol.bodies import SubscriptionGroup
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import (
    CreateTopicHeader,
    EndTransactionHeader,
    QueryMessageHeader,
    SendHeader,
    SendResponse,
    UpdateConsumerOffsetHeader,
)
from reference_impl.protocol.message import (
    BatchPart,
    decode_all,
    encode_batch,
    pack_properties,
    parse_offset_message_id,
)
from reference_impl.storage import DiskStore, FlushMode, StoreOptions
from reference_impl.storage.errors import DiskFailed, DiskFull
from reference_impl.storage.simulated_disk import SimulatedDisk

NOW_MS = 1_700_000_000_000
TOPIC = "orders"
GROUP = "billing"
SYNC = StoreOptions(FlushMode.SYNC, segment_bytes=1024, queue_file_bytes=200, index_block=2)
ASYNC = StoreOptions(
    FlushMode.ASYNC, flush_ms=500, segment_bytes=1024, queue_file_bytes=200, index_block=2
)


@dataclass
class Run:
    """A broker on a disk, driven by hand. acknowledged: (queue id, offset, body) of every send that was answered OK.

    refused: bodies that were refused. batches: bodies of each batch that was sent. delayed: bodies that were
    acknowledged to come later. made: topics and groups whose making was acknowledged. halves: what was answered to each
    half message's send; ended: how its transaction ended, where that was acknowledged.
    """

    disk: SimulatedDisk
    options: StoreOptions = SYNC
    now_ms: int = NOW_MS
    acknowledged: list[tuple[int, int, bytes]] = field(default_factory=list)
    refused: list[tuple[int, bytes]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)
    batches: list[list[bytes]] = field(default_factory=list)
    delayed: list[bytes] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    halves: dict[bytes, Command] = field(default_factory=dict)
    ended: dict[bytes, int] = field(default_factory=dict)
    timers: dict[Any, int] = field(default_factory=dict)
    flushes: list[Flush] = field(default_factory=list)
    answers: dict[int, Command] = field(default_factory=dict)

    def start(self) -> DiskStore:
        self.store = DiskStore.open(self.disk, self.options)
        self.broker = Broker(
            BrokerConfig(delay_levels="1s 2s", persist_ms=1_000, persist_first_ms=1_000), self.store
        )
        self._bodies: dict[int, tuple[int, list[bytes]]] = {}
        self._told: dict[int, Callable[[Command], None]] = {}  # what an answer of success means
        self._opaque = 0
        self.timers.clear()
        self.flushes.clear()
        self.feed(Start())
        self.feed(Opened("c", "127.0.0.1:4000"))
        self.make_topic(TOPIC)
        self.make_group(GROUP)
        return self.store

    def make_topic(self, name: str) -> None:
        self._told[self._opaque + 1] = lambda answer: self.made.append(name)
        self.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader(name, 2, 2).to_ext())

    def make_group(self, name: str) -> None:
        self._told[self._opaque + 1] = lambda answer: self.made.append(name)
        self.ask(
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, SubscriptionGroup(name).encode()
        )

    def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> int:
        self._opaque += 1
        self.feed(Received("c", Command(code, ext, body, self._opaque)))
        return self._opaque

    def send(self, queue_id: int, body: bytes, *, level: int = 0) -> None:
        properties = {"UNIQ_KEY": body.decode()[:20], "TAGS": "t"} | (
            {"DELAY": str(level)} if level else {}
        )
        header = SendHeader(
            "P", TOPIC, queue_id, self.now_ms, properties=pack_properties(properties)
        )
        self._bodies[self._opaque + 1] = (queue_id, [] if level else [body])
        if level:
            self._told[self._opaque + 1] = lambda answer: self.delayed.append(body)
        self.ask(RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), body)

    def send_half(self, queue_id: int, body: bytes) -> None:
        properties = {"UNIQ_KEY": body.decode()[:20], "TRAN_MSG": "true", "PGROUP": "P"}
        header = SendHeader(
            "P", TOPIC, queue_id, self.now_ms, sys_flag=4, properties=pack_properties(properties)
        )
        self._told[self._opaque + 1] = lambda answer: self.halves.update({body: answer})
        self.ask(RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), body)

    def end_half(self, body: bytes, state: int) -> None:
        """Where its send was acknowledged: nobody else knows where it lies. state: 8 commit, 12 rollback."""
        stored = self.halves.get(body)
        if stored is not None:
            place = parse_offset_message_id(stored.ext["msgId"])[1]
            header = EndTransactionHeader("P", int(stored.ext["queueOffset"]), place, state)
            self._told[self._opaque + 1] = lambda answer: self.ended.update({body: state})
            self.ask(RequestCode.END_TRANSACTION, header.to_ext())

    def find(self, key: str) -> list[bytes]:
        """The bodies that the broker finds by a unique key."""
        header = QueryMessageHeader(TOPIC, key, 9, 0, 2**62)
        opaque = self.ask(RequestCode.QUERY_MESSAGE, header.to_ext())
        answer = self.answers[opaque]
        return [message.body for message in decode_all(answer.body)] if answer.code == 0 else []

    def send_batch(self, queue_id: int, bodies: list[bytes]) -> None:
        self.batches.append(bodies)
        header = SendHeader("P", TOPIC, queue_id, self.now_ms, batch=True)
        self._bodies[self._opaque + 1] = (queue_id, bodies)
        body = encode_batch([BatchPart(body, {"UNIQ_KEY": body.decode()[:20]}) for body in bodies])
        self.ask(RequestCode.SEND_BATCH_MESSAGE, header.to_ext_v2(), body)

    def commit(self, offset: int) -> None:
        self.ask(
            RequestCode.UPDATE_CONSUMER_OFFSET,
            UpdateConsumerOffsetHeader(GROUP, TOPIC, 0, offset).to_ext(),
        )
        self.committed.append(offset)

    def flush(self) -> None:
        """Carry out the syncs that were asked for, and those that these lead to."""
        while self.flushes:
            work = self.flushes.pop(0).begin()
            try:
                result = Flushed(work())
            except (DiskFailed, DiskFull) as error:
                result = Flushed(0, str(error))
            self.feed(result)

    def pass_ms(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self.timers and min(self.timers.values()) <= end_ms:
            token = min(self.timers, key=lambda one: (self.timers[one], str(one)))
            self.now_ms = max(self.now_ms, self.timers.pop(token))
            self.feed(TimerFired(token))
            self.flush()
        self.now_ms = end_ms

    def feed(self, event: Input) -> None:
        for effect in self.broker.handle(self.now_ms, event):
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case SetTimer(token, delay_ms):
                self.timers[token] = self.now_ms + delay_ms
            case Flush():
                self.flushes.append(effect)
            case Send(_, answer):
                self.answers[answer.opaque] = answer
                self._sent(answer)
            case _:
                pass

    def _sent(self, answer: Command) -> None:
        if answer.code == 0 and answer.opaque in self._told:
            self._told.pop(answer.opaque)(answer)
        if answer.opaque not in self._bodies:
            return
        queue_id, bodies = self._bodies[answer.opaque]
        self.codes.append(answer.code)
        if answer.code == 0:
            first = SendResponse.from_ext(answer.ext).queue_offset
            self.acknowledged += [
                (queue_id, first + place, body) for place, body in enumerate(bodies)
            ]
        elif answer.code != 10:
            self.refused += [(queue_id, body) for body in bodies]


def contents(store: BrokerStore) -> dict[tuple[str, int], list[tuple[int, bytes]]]:
    """Queue → its messages as (offset, body), of the queues that have any."""
    return {
        key: [(message.queue_offset, message.body) for message in queue.messages]
        for key, queue in sorted(store.queues().items())
        if len(queue.messages)
    }


def log_of(store: BrokerStore) -> list[tuple[str, int, int, bytes]]:
    """All messages in the order of the log, as (topic, queue id, offset, body)."""
    found = [message for queue in store.queues().values() for message in queue.messages]
    found.sort(key=lambda message: message.physical_offset)
    return [
        (message.topic, message.queue_id, message.queue_offset, message.body) for message in found
    ]
