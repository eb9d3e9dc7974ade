"""Consumed offsets: kept here, told to the broker one way, asked back at the start.

* A finished batch moves the lane's offset to its last message + 1; a dropped lane's offset never moves.
* All offsets are sent each persist interval, one way, changed or not, and once more when a lane is dropped.
* Asking ends in three ways: an offset, "nothing stored", or nobody can say.

Source: `RemoteBrokerOffsetStore` of apache/rocketmq.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from reference_impl.core.consumer.part import Part, failure_outcome
from reference_impl.core.consumer.process_queue import NOTHING, ProcessQueue
from reference_impl.core.consumer.start_offset import FAILED, NOT_FOUND
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.headers import (
    OffsetResponse,
    QueryConsumerOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from specs.vocabulary import Kind, Outcome, Queue

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

PERSIST = ("persist",)
CORRECTED = "corrected"
"""Marks a commit in the history: see docs/history.md."""


class OffsetStore(Part, ABC):
    """How far this consumer is with each lane, and where that outlives it."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.remembered: dict[int, ProcessQueue] = {}  # whose offsets are persisted, by serial
        consumer.timers["persist"] = self._persist_tick

    def start(self, now_ms: int) -> None:
        self.consumer.set_timer(PERSIST, self.config.persist_first_ms)

    @abstractmethod
    def fetch_stored(self, now_ms: int, queue: Queue, then: Callable[[int, int], None]) -> None:
        """Asks which offset is stored; `then(now_ms, offset)` with NOT_FOUND or FAILED where there is none."""

    @abstractmethod
    def persist(self, pq: ProcessQueue) -> None:
        """Stores the lane's offset where it outlives us."""

    @abstractmethod
    def offset_to_piggyback(self, pq: ProcessQueue) -> int:
        """What a pull carries along; only a value above 0 is sent."""

    # ------------------------------------------------------------ the store

    def store_offset(self, pq: ProcessQueue, value: int) -> None:
        """A batch is finished. A dropped lane belongs to somebody else: what is stored there is not ours to move."""
        if value >= 0 and not pq.dropped:
            pq.offset = value

    def correct_offset(self, pq: ProcessQueue, next_offset: int) -> None:
        """Nothing held and nothing there: what the broker skipped (by a filter) is finished as well."""
        if not pq.held and not pq.dropped and next_offset > pq.offset:
            pq.offset = pq.corrected = next_offset

    def commit_row(self, pq: ProcessQueue, value: int) -> dict[str, Any]:
        """A commit for the recorder; it says where the value is the broker's correction and no finished batch."""
        row = {**pq.row, "value": value}
        return {**row, "detail": CORRECTED} if value == pq.corrected else row

    def offset_to_persist(self, pq: ProcessQueue) -> int:
        return pq.offset

    def forget_offset(self, pq: ProcessQueue) -> None:
        """The lane is dropped: its offset was reported once more, and is no longer ours to report."""
        self.remembered.pop(pq.serial, None)

    def _persist_tick(self, now_ms: int) -> None:
        self.consumer.set_timer(PERSIST, self.config.persist_interval_ms)
        for pq in list(self.remembered.values()):
            self.persist(pq)


class BrokerOffsets(OffsetStore):
    """Stored by the broker, for the whole group."""

    # ------------------------------------------------------------ telling the broker

    def offset_to_piggyback(self, pq: ProcessQueue) -> int:
        return pq.offset

    def persist(self, pq: ProcessQueue) -> None:
        """One commit, one way. Nothing to say, or nobody to say it to: nothing is sent."""
        value = self.offset_to_persist(pq)
        address = self.consumer.addresses.get(pq.queue.broker)
        if value == NOTHING or address is None:
            return
        if not pq.commit_ext:
            queue = pq.queue
            pq.commit_ext = UpdateConsumerOffsetHeader(
                self.config.group, queue.topic, queue.queue_id
            ).to_ext()
        op = self.consumer.begin(Kind.COMMIT, self.commit_row(pq, value))
        ext = {**pq.commit_ext, "commitOffset": str(value)}
        self.consumer.oneway(
            address, Command(RequestCode.UPDATE_CONSUMER_OFFSET, ext, flag=FLAG_ONEWAY)
        )
        self.consumer.end(op, Outcome.SENT, {})

    # ------------------------------------------------------------ asking the broker

    def fetch_stored(self, now_ms: int, queue: Queue, then: Callable[[int, int], None]) -> None:
        op = self.consumer.begin(Kind.FETCH_OFFSET, self.consumer.row_of(queue))
        header = QueryConsumerOffsetHeader(self.config.group, queue.topic, queue.queue_id)
        command = Command(RequestCode.QUERY_CONSUMER_OFFSET, header.to_ext())
        address = self.consumer.addresses.get(queue.broker)
        self.consumer.request(
            now_ms,
            address,
            command,
            self.config.request_timeout_ms,
            partial(self._fetched, op, then),
        )

    def _fetched(
        self,
        op: int,
        then: Callable[[int, int], None],
        now_ms: int,
        answer: Command | None,
        reason: str,
    ) -> None:
        stored = self.read_stored(answer)
        fields: Mapping[str, Any]
        if answer is None:
            outcome, fields = failure_outcome(reason), {"detail": reason}
        elif answer.code == ResponseCode.SUCCESS:
            outcome, fields = Outcome.OK, {"code": answer.code, "value": stored}
        elif answer.code == ResponseCode.QUERY_NOT_FOUND:
            outcome, fields = Outcome.REFUSED, {"code": answer.code, "value": NOT_FOUND}
        else:
            outcome, fields = Outcome.REFUSED, {"code": answer.code, "detail": answer.remark}
        self.consumer.end(op, outcome, fields)
        then(now_ms, stored)

    def read_stored(self, answer: Command | None) -> int:
        """The offset; NOT_FOUND only when the broker says just that; FAILED for everything else."""
        if answer is None:
            return FAILED
        if answer.code == ResponseCode.SUCCESS:
            offset = OffsetResponse.from_ext(answer.ext).offset
            return offset if offset >= 0 else NOT_FOUND
        return NOT_FOUND if answer.code == ResponseCode.QUERY_NOT_FOUND else FAILED
