"""A lane that is taken away is given back without reporting its offset once more.

Shows when a client that has finished several messages since its last report gives a lane to another one.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_release import LaneRelease
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "handover-reports-nothing"
BUG = "B-52: the offset is not stored when a lane is dropped"
SOURCE = "RocketMQ before commit 169294184b (2013)"
KILLED_BY = "ORD-14"


class MutatedRelease(LaneRelease):
    def drop(self, now_ms: int, pq: ProcessQueue, reason: str) -> None:
        self.mark_dropped(pq, reason)
        self.leave(pq)


class Mutated(OrderlyConsumer):
    release_class = MutatedRelease


consumer = Mutated
