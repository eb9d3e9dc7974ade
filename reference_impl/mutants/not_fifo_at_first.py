"""For the first two seconds of its life a client does not know that its group wants order.

Shows when messages of one key wait for a client that starts.
"""

from collections import deque

from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.io import Start
from reference_impl.protocol.message import StoredMessage

NAME = "not-fifo-at-first"
BUG = "B-76: a client consumes without order until its settings have arrived"
SOURCE = "rocketmq-clients #599, #754 and #755"
KILLED_BY = "ORD-12"

KNOWN_AFTER_MS = 2_000


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.began_ms = 0

    def on_start(self, now_ms: int, input: Start) -> None:
        self.began_ms = now_ms
        super().on_start(now_ms, input)

    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        must_start = pq.put(messages)
        if now_ms - self.began_ms < KNOWN_AFTER_MS:
            pq.pending = deque(sorted(pq.pending, key=lambda message: -message.queue_offset))
        if must_start:
            self.resubmit(now_ms, pq)


consumer = Mutated
