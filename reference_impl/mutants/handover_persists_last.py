"""A lane that is taken away is released first; its offset is stored a second later.

Shows when a client with finished messages gives a lane to another one.
"""

from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "handover-persists-last"
BUG = "B-52, B-77 e: the offset is not stored at the handover, but after it"
SOURCE = "RocketMQ before commit 169294184b (2013)"
KILLED_BY = "CMT-5"

GAP_MS = 1_000


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.late: dict[int, ProcessQueue] = {}
        self._timers["late"] = self.persist_late

    def drop(self, now_ms: int, pq: ProcessQueue, reason: str) -> None:
        self.mark_dropped(pq, reason)
        self.late[pq.serial] = pq
        self.set_timer(("late", pq.serial), GAP_MS)
        if self.may_release(pq):
            self.release(pq)
        else:
            self.leaving[pq.queue] = pq

    def persist_late(self, now_ms: int, serial: int) -> None:
        self.persist(self.late.pop(serial))


consumer = Mutated
