"""A lane that is taken away is released first; its offset is stored a second later.

Shows when a client with finished messages gives a lane to another one.
"""

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.lane_release import LaneRelease
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "handover-persists-last"
BUG = "B-52, B-77 e: the offset is not stored at the handover, but after it"
SOURCE = "RocketMQ before commit 169294184b (2013)"
KILLED_BY = "CMT-5"

GAP_MS = 1_000


class MutatedRelease(LaneRelease):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.late: dict[int, ProcessQueue] = {}
        consumer.timers["late"] = self.persist_late

    def drop(self, now_ms: int, pq: ProcessQueue, reason: str) -> None:
        self.mark_dropped(pq, reason)
        self.late[pq.serial] = pq
        self.consumer.set_timer(("late", pq.serial), GAP_MS)
        self.leave(pq)

    def persist_late(self, now_ms: int, serial: int) -> None:
        self.consumer.offsets.persist(self.late.pop(serial))


class Mutated(OrderlyConsumer):
    release_class = MutatedRelease


consumer = Mutated
