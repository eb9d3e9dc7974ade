"""For the first two seconds of its life a client does not know that its group wants order.

Shows when messages of one key wait for a client that starts.
"""

from collections import deque

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "not-fifo-at-first"
BUG = "B-76: a client consumes without order until its settings have arrived"
SOURCE = "rocketmq-clients #599, #754 and #755"
KILLED_BY = "ORD-12"

KNOWN_AFTER_MS = 2_000


class MutatedLoop(OrderlyLoop):
    def __init__(self, consumer: OrderlyConsumer) -> None:
        super().__init__(consumer)
        self.began_ms = 0

    def start(self, now_ms: int) -> None:
        self.began_ms = now_ms

    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        must_start = pq.put(messages)
        if now_ms - self.began_ms < KNOWN_AFTER_MS:
            pq.pending = deque(sorted(pq.pending, key=lambda message: -message.queue_offset))
        if must_start:
            self.resubmit(now_ms, pq)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
