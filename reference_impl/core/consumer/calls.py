"""Listener calls: begun, ended, counted, on a limited number of threads.

Which call is made next, and what its result means, is the loop's affair.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reference_impl.core.consumer.dead_letters import id_of
from reference_impl.core.consumer.part import Part
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.io import CallListener
from reference_impl.protocol.message import StoredMessage, own_properties
from specs.history.hashes import props_hash
from specs.vocabulary import Kind, Queue

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

KEY_SEQ = "KEY_SEQ"


@dataclass(slots=True)
class Call:
    """One listener call."""

    pq: ProcessQueue
    batch: list[StoredMessage]
    op: int


class Calls(Part):
    """The calls that are open, and the threads that are free. A thread may outlast its call: the loop lends it."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.free_threads = self.config.threads
        self.open: dict[int, Call] = {}
        self._call_number = 0
        self._delivered: dict[Queue, dict[int, int]] = {}

    def call_listener(self, pq: ProcessQueue, batch: list[StoredMessage]) -> None:
        counts = pq.delivered
        delivery = []
        rows = []
        for message in batch:
            offset = message.queue_offset
            tries = counts[offset] = counts.get(offset, 0) + 1
            delivery.append(message.reconsume_times + tries)
            rows.append(self._delivery_row(pq, message, tries))
        op = self.consumer.begin(Kind.DELIVER, pq.row, rows)
        self._call_number += 1
        self.open[self._call_number] = Call(pq, batch, op)
        self.consumer.do(CallListener(self._call_number, pq.lane, batch, delivery))

    def _delivery_row(self, pq: ProcessQueue, message: StoredMessage, tries: int) -> dict[str, Any]:
        properties = message.properties
        sequence = properties.get(KEY_SEQ)
        return {
            **pq.row,
            "queue_offset": message.queue_offset,
            "message_id": id_of(message),
            "origin_id": message.source_id,
            "sharding_key": message.sharding_key,
            "key_seq": int(sequence) if sequence is not None and sequence.isdecimal() else None,
            "reconsume_times": pq.times(message),
            "attempt": tries,
            "body_hash": zlib.crc32(message.body),
            "props_hash": props_hash(own_properties(properties)),
            "tags": message.tags,
            "delay_level": message.delay_level,
        }

    def returned(self, call_id: int) -> Call | None:
        """The call that has ended; None when nobody waits for it any more."""
        return self.open.pop(call_id, None)

    def delivery_counts(self, queue: Queue) -> dict[int, int]:
        """How often this client has delivered each offset of the queue, in all its incarnations."""
        return self._delivered.setdefault(queue, {})
