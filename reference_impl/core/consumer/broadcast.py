"""The broadcast consumer: every member consumes every queue, for itself.

Nobody shares anything, so there is nothing to agree about: no members are asked for, no lease is taken, and how far
this client is concerns nobody else. Its offsets are kept in a file of its own; a crash repeats what came after the
last write. A message that the listener could not process is finished all the same: there is no retry topic and no
dead letter, for another try would reach every member.
Source: `LocalFileOffsetStore`, and the branches for BROADCASTING of apache/rocketmq's push consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.consumer import Consumer
from reference_impl.core.consumer.offsets import OffsetStore
from reference_impl.core.consumer.process_queue import NOTHING, ProcessQueue
from reference_impl.core.consumer.rebalance import Rebalance
from reference_impl.core.consumer.side_by_side_loop import SideBySideLoop
from reference_impl.core.consumer.start_offset import NOT_FOUND
from reference_impl.core.consumer.unfinished_queue import UnfinishedQueue
from reference_impl.core.io import ListenerReturned
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import Kind, Queue

OffsetFile = dict[Queue, int]
"""What a client has written down: queue → where it goes on. It outlives the process."""


class LocalOffsets(OffsetStore):
    """Stored in the client's own file."""

    consumer: BroadcastConsumer

    def fetch_stored(self, now_ms: int, queue: Queue, then: Callable[[int, int], None]) -> None:
        then(now_ms, self.consumer.file.get(queue, NOT_FOUND))

    def persist(self, pq: ProcessQueue) -> None:
        value = self.offset_to_persist(pq)
        if value != NOTHING:
            self.consumer.file[pq.queue] = value
            self.consumer.note(Kind.PERSIST, {**pq.row, "value": value})

    def offset_to_piggyback(self, pq: ProcessQueue) -> int:
        return NOTHING  # no broker is told


class WholeShare(Rebalance):
    """Every queue is ours, whoever else is there."""

    def ask_members(self, now_ms: int, topic: str) -> None:
        self.take_share(now_ms, topic, [self.config.client_id])


class BroadcastLoop(SideBySideLoop):
    """Batches as they came, each delivered once, whatever comes of it."""

    def failed(
        self,
        now_ms: int,
        pq: UnfinishedQueue,
        batch: Sequence[StoredMessage],
        how: ListenerReturned,
    ) -> None:
        self.succeeded(now_ms, pq, batch)


class BroadcastConsumer(Consumer):
    """One client that is given everything. file: its own offsets, as an earlier process of it left them."""

    offsets_class: ClassVar[type[OffsetStore]] = LocalOffsets
    loop_class: ClassVar[type[SideBySideLoop]] = BroadcastLoop
    rebalance_class: ClassVar[type[Rebalance]] = WholeShare

    def __init__(self, config: ConsumerConfig, file: OffsetFile | None = None) -> None:
        self.file: OffsetFile = {} if file is None else file
        super().__init__(config)
