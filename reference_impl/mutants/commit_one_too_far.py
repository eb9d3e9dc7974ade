"""Each commit names one message more than was finished.

Shows in any run that commits.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.offsets import BrokerOffsets
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "commit-one-too-far"
BUG = "hand-made: the offset after the next message is stored"
SOURCE = "ProcessQueue.commit"
KILLED_BY = "CMT-2"


class MutatedOffsets(BrokerOffsets):
    def store_offset(self, pq: ProcessQueue, value: int) -> None:
        super().store_offset(pq, value + 1)


class Mutated(OrderlyConsumer):
    offsets_class = MutatedOffsets


consumer = Mutated
