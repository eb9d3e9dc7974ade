"""A call that ends after its lane was dropped still moves the offset, and reports it.

Shows when a lane goes to another client while its call runs.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.offsets import BrokerOffsets
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "dropped-lane-reports-on"
BUG = "B-40, B-51: the offset is updated though the queue is dropped"
SOURCE = "RocketMQ before commit 71d5815522 (2014); rocketmq-client-cpp"
KILLED_BY = "CMT-6"


class MutatedOffsets(BrokerOffsets):
    def store_offset(self, pq: ProcessQueue, value: int) -> None:
        super().store_offset(pq, value)
        if pq.dropped and value >= 0:
            pq.offset = value
            self.persist(pq)


class Mutated(OrderlyConsumer):
    offsets_class = MutatedOffsets


consumer = Mutated
