"""A suspended lane sleeps on its thread until its time has come.

Shows where a client has as many suspended lanes as threads, and another lane has messages.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "suspended-lane-keeps-its-thread"
BUG = "hand-made: the pause of a suspension is a sleep of the thread that consumes the lane"
SOURCE = "ConsumeMessageOrderlyService.submitConsumeRequestLater, which hands the pause to a scheduler instead"
KILLED_BY = "RTY-6"


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self._asleep: set[int] = set()

    def rest(self, now_ms: int, pq: ProcessQueue, pause_ms: int) -> None:
        self.free_threads -= 1
        self._asleep.add(pq.serial)
        super().rest(now_ms, pq, pause_ms)

    def _resubmit_tick(self, now_ms: int, serial: int) -> None:
        if serial in self._asleep:
            self._asleep.remove(serial)
            self._leave_thread()
        super()._resubmit_tick(now_ms, serial)
        self.use_threads(now_ms)


consumer = Mutated
