"""The pause after a suspension is slept by what serves all lanes of the client, and not by the one lane alone.

Shows where a listener suspends for longer than the bound while another lane has messages.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "suspension-stops-all-lanes"
BUG = "hand-made: a lane that is suspended holds back all other lanes of its client"
SOURCE = "ConsumeMessageOrderlyService, if submitConsumeRequestLater slept instead of scheduling"
KILLED_BY = "RTY-6"


class MutatedLoop(OrderlyLoop):
    def __init__(self, consumer: OrderlyConsumer) -> None:
        super().__init__(consumer)
        self._asleep_until_ms = 0

    def rest(self, now_ms: int, pq: ProcessQueue, pause_ms: int) -> None:
        self._asleep_until_ms = now_ms + pause_ms
        super().rest(now_ms, pq, pause_ms)

    def turn(self, now_ms: int, pq: ProcessQueue) -> None:
        left_ms = self._asleep_until_ms - now_ms
        if left_ms <= 0:
            super().turn(now_ms, pq)
            return
        self.resubmit_later(pq, left_ms)
        self.leave_thread()


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
