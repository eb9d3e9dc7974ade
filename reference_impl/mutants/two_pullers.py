"""A lane's first pull is repeated a second later from the offset that it remembers, beside the chain that goes on.

Shows in any incarnation that has finished messages by then: they come again, and the next commit goes back.
"""

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import LeasedPulling

NAME = "two-pullers"
BUG = "B-26, B-27: a second pull request for a queue that has one"
SOURCE = "DefaultMQPushConsumerImpl before commit ab573bd737 (2015); RocketMQ issue 2449; rocketmq-client-go #313"
KILLED_BY = "ORD-10"

AGAIN_MS = 1_000


class MutatedPulling(LeasedPulling):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        consumer.timers["pull-again"] = self.pull_again

    def anchor(self, pq: ProcessQueue, now_ms: int, stored: int) -> None:
        super().anchor(pq, now_ms, stored)
        if pq.anchored:
            self.consumer.set_timer(("pull-again", pq.serial, pq.next_offset), AGAIN_MS)

    def pull_again(self, now_ms: int, serial: int, offset: int) -> None:
        pq = self.consumer.serials.get(serial)
        if pq is not None and not self.consumer.stopping:
            pq.next_offset = offset
            self.send_pull(now_ms, pq)


class Mutated(OrderlyConsumer):
    pulling_class = MutatedPulling


consumer = Mutated
