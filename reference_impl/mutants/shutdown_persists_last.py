"""A shutdown releases its leases and says goodbye before it stores the last offsets, a second later.

Shows when a client with finished messages shuts down and another takes over within that second.
"""

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.shutdown import ShutdownSequence

NAME = "shutdown-persists-last"
BUG = "B-77 e: the shutdown frees the locks before it persists the offsets"
SOURCE = "DefaultMQPushConsumerImpl.shutdown, all versions (there the gap is short)"
KILLED_BY = "CMT-13"

GAP_MS = 1_000


class MutatedShutdown(ShutdownSequence):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.late: list[ProcessQueue] = []
        consumer.timers["late"] = self.persist_late

    def give_lanes_back(self, lanes: list[ProcessQueue]) -> None:
        self.late = lanes
        self.release_all(lanes)

    def finish_leaving(self) -> None:
        self.consumer.set_timer(("late",), GAP_MS)

    def persist_late(self, now_ms: int) -> None:
        for pq in self.late:
            self.consumer.offsets.persist(pq)
        super().finish_leaving()


class Mutated(OrderlyConsumer):
    shutdown_class = MutatedShutdown


consumer = Mutated
