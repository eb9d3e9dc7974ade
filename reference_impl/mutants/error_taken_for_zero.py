"""When the offset query before a lane's first pull fails, the lane starts at 0.

Shows when that query (the second of a new owner) is refused, or its answer lost, while an offset is stored.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import LeasedPulling
from reference_impl.core.consumer.start_offset import FAILED

NAME = "error-taken-for-zero"
BUG = "B-54: an error in the offset query is treated like a missing offset, and the group consumes from the first"
SOURCE = (
    "RocketMQ issue 2944; at the first pull of an orderly consumer up to 4.9.8, from 5.0.0 guarded"
)
KILLED_BY = "ORD-5"


class MutatedPulling(LeasedPulling):
    def anchor(self, pq: ProcessQueue, now_ms: int, stored: int) -> None:
        super().anchor(pq, now_ms, 0 if stored == FAILED else stored)


class Mutated(OrderlyConsumer):
    pulling_class = MutatedPulling


consumer = Mutated
