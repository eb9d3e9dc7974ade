"""A lane that was dropped and released is consumed on until its cache is empty.

Shows when a client joins while the lanes hold several messages.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_release import LaneRelease
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "dropped-lane-goes-on"
BUG = "B-40, B-51: the loop does not look whether its queue was dropped"
SOURCE = (
    "rocketmq-client-cpp, ConsumeMessageOrderlyService; rocketmq-client-go #905 (3f06d9a, 2022)"
)
KILLED_BY = "ORD-13"


class MutatedRelease(LaneRelease):
    def release(self, pq: ProcessQueue) -> None:
        super().release(pq)
        pq.locked, pq.dropped = True, False


class Mutated(OrderlyConsumer):
    release_class = MutatedRelease


consumer = Mutated
