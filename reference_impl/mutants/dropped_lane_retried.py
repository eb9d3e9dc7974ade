"""A suspended batch comes again when its time is up, although the lane was dropped and released meanwhile.

Shows when a client joins or leaves while a batch of the lane is suspended.
"""

from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "dropped-lane-retried"
BUG = "B-46: the timed retry of a queue that was removed goes on"
SOURCE = "RocketMQ before commit 9c350a85c5 (2013)"
KILLED_BY = "ORD-13"


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.dropped: dict[int, ProcessQueue] = {}

    def mark_dropped(self, pq: ProcessQueue, reason: str) -> None:
        super().mark_dropped(pq, reason)
        self.dropped[pq.serial] = pq

    def _resubmit_tick(self, now_ms: int, serial: int) -> None:
        pq = self.dropped.get(serial)
        batch = [] if pq is None else pq.take(self.config.batch)
        if pq is None or not batch:
            super()._resubmit_tick(now_ms, serial)
        else:
            self.free_threads -= 1
            self.call_listener(pq, batch)


consumer = Mutated
