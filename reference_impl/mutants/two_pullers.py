"""A lane's first pull is repeated a second later from the offset that it remembers, beside the chain that goes on.

Shows in any incarnation that has finished messages by then: they come again, and the next commit goes back.
"""

from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "two-pullers"
BUG = "B-26, B-27: a second pull request for a queue that has one"
SOURCE = "DefaultMQPushConsumerImpl before commit ab573bd737 (2015); RocketMQ issue 2449; rocketmq-client-go #313"
KILLED_BY = "ORD-10"

AGAIN_MS = 1_000


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self._timers["pull-again"] = self.pull_again

    def _anchor(self, pq: ProcessQueue, now_ms: int, stored: int) -> None:
        super()._anchor(pq, now_ms, stored)
        if pq.anchored:
            self.set_timer(("pull-again", pq.serial, pq.next_offset), AGAIN_MS)

    def pull_again(self, now_ms: int, serial: int, offset: int) -> None:
        pq = self.serials.get(serial)
        if pq is not None and not self.stopping:
            pq.next_offset = offset
            self.send_pull(now_ms, pq)


consumer = Mutated
