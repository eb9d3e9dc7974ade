"""A shutdown releases its leases and says goodbye before it stores the last offsets, a second later.

Shows when a client with finished messages shuts down and another takes over within that second.
"""

from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "shutdown-persists-last"
BUG = "B-77 e: the shutdown frees the locks before it persists the offsets"
SOURCE = "DefaultMQPushConsumerImpl.shutdown, all versions (there the gap is short)"
KILLED_BY = "CMT-13"

GAP_MS = 1_000


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.late: list[ProcessQueue] = []
        self._timers["late"] = self.persist_late

    def give_lanes_back(self, lanes: list[ProcessQueue]) -> None:
        self.late = lanes
        self.release_all(lanes)

    def _finish_leaving(self) -> None:
        self.set_timer(("late",), GAP_MS)

    def persist_late(self, now_ms: int) -> None:
        for pq in self.late:
            self.persist(pq)
        super()._finish_leaving()


consumer = Mutated
