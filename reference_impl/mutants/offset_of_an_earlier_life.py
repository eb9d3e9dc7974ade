"""A lane that comes back reports the offset at which it went, until it has finished something.

Shows when a lane goes to another client and comes back: the other's progress is overwritten.
"""

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.offsets import BrokerOffsets
from reference_impl.core.consumer.process_queue import ProcessQueue
from specs.vocabulary import Queue

NAME = "offset-of-an-earlier-life"
BUG = "B-58: the offset store knows queues and not their incarnations"
SOURCE = "RocketMQ issue 2732 (d111c0a3d6, 2021); rocketmq-client-go #927"
KILLED_BY = "CMT-2"


class MutatedOffsets(BrokerOffsets):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.before: dict[Queue, int] = {}

    def forget_offset(self, pq: ProcessQueue) -> None:
        super().forget_offset(pq)
        if pq.offset >= 0:
            self.before[pq.queue] = pq.offset

    def store_offset(self, pq: ProcessQueue, value: int) -> None:
        super().store_offset(pq, value)
        self.before.pop(pq.queue, None)

    def offset_to_persist(self, pq: ProcessQueue) -> int:
        return self.before.get(pq.queue, pq.offset)

    def offset_to_piggyback(self, pq: ProcessQueue) -> int:
        return self.before.get(pq.queue, pq.offset)


class Mutated(OrderlyConsumer):
    offsets_class = MutatedOffsets


consumer = Mutated
