"""A suspended lane sleeps on its thread until its time has come.

Shows where a client has as many suspended lanes as threads, and another lane has messages.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "suspended-lane-keeps-its-thread"
BUG = "hand-made: the pause of a suspension is a sleep of the thread that consumes the lane"
SOURCE = "ConsumeMessageOrderlyService.submitConsumeRequestLater, which hands the pause to a scheduler instead"
KILLED_BY = "RTY-6"


class MutatedLoop(OrderlyLoop):
    def __init__(self, consumer: OrderlyConsumer) -> None:
        super().__init__(consumer)
        self._asleep: set[int] = set()

    def rest(self, now_ms: int, pq: ProcessQueue, pause_ms: int) -> None:
        self.consumer.calls.free_threads -= 1
        self._asleep.add(pq.serial)
        super().rest(now_ms, pq, pause_ms)

    def resubmit_due(self, now_ms: int, serial: int) -> None:
        if serial in self._asleep:
            self._asleep.remove(serial)
            self.leave_thread()
        super().resubmit_due(now_ms, serial)
        self.use_threads(now_ms)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
