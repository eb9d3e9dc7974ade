"""A lane that is dropped with messages in its cache is unlocked a while later, whoever works on it by then.

Shows when a client gives a lane up and gets it back within one lock interval: its own late unlock takes away the
lease that it works under.
"""

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event
from reference_impl.core.consumer.lane_release import LaneRelease
from reference_impl.core.consumer.process_queue import ProcessQueue
from specs.vocabulary import Queue

NAME = "delayed-unlock"
BUG = "B-77 a: the delayed unlock releases a lock that the same client has taken again"
SOURCE = "RebalancePushImpl.unlockDelay up to 5.1"
KILLED_BY = "LSE-3"


class MutatedRelease(LaneRelease):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        consumer.timers["late-unlock"] = self.unlock_late

    def release(self, pq: ProcessQueue) -> None:
        if not pq.pending:
            super().release(pq)
            return
        self.consumer.move(pq, Event.RELEASE)
        self.consumer.set_timer(("late-unlock", pq.queue), self.config.lock_interval_ms)

    def unlock_late(self, now_ms: int, queue: Queue) -> None:
        self.consumer.leases.unlock(queue.broker, [queue])


class Mutated(OrderlyConsumer):
    release_class = MutatedRelease


consumer = Mutated
