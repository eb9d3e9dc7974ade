"""The pause after a suspension is slept by what serves all lanes of the client, and not by the one lane alone.

Shows where a listener suspends for longer than the bound while another lane has messages.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "suspension-stops-all-lanes"
BUG = "hand-made: a lane that is suspended holds back all other lanes of its client"
SOURCE = "ConsumeMessageOrderlyService, if submitConsumeRequestLater slept instead of scheduling"
KILLED_BY = "RTY-6"


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self._asleep_until_ms = 0

    def rest(self, now_ms: int, pq: ProcessQueue, pause_ms: int) -> None:
        self._asleep_until_ms = now_ms + pause_ms
        super().rest(now_ms, pq, pause_ms)

    def _turn(self, now_ms: int, pq: ProcessQueue) -> None:
        left_ms = self._asleep_until_ms - now_ms
        if left_ms <= 0:
            super()._turn(now_ms, pq)
            return
        self.set_timer(("resubmit", pq.serial), left_ms)
        self._leave_thread()


consumer = Mutated
