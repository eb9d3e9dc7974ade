"""The offset of a lane that was released keeps being reported.

Shows when a lane goes to another client: the old owner's next report overwrites the new owner's progress.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.offsets import BrokerOffsets
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "stale-commit-after-release"
BUG = "B-51, B-58: the offset of a dropped queue is not forgotten"
SOURCE = "RocketMQ commit 71d5815522 (2014) and issue 2732 (d111c0a3d6, 2021)"
KILLED_BY = "CMT-5"


class MutatedOffsets(BrokerOffsets):
    def forget_offset(self, pq: ProcessQueue) -> None:
        pass


class Mutated(OrderlyConsumer):
    offsets_class = MutatedOffsets


consumer = Mutated
