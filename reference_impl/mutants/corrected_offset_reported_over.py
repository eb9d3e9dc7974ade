"""A lane whose offset the broker moved is dropped with a report of what the client had finished.

So the broker's correction, or an operator's reset, is overwritten as soon as the client has heard of it.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import LeasedPulling

NAME = "corrected-offset-reported-over"
BUG = "B-63: a running listener's commit overwrites the offset that the broker has corrected"
SOURCE = "RocketMQ issue 7634"
KILLED_BY = "CMT-11"


class MutatedPulling(LeasedPulling):
    def offset_moved(self, now_ms: int, pq: ProcessQueue, next_offset: int) -> None:
        self.consumer.release.drop(now_ms, pq, "offset moved by the broker")
        self.consumer.rebalance.soon()


class Mutated(OrderlyConsumer):
    pulling_class = MutatedPulling


consumer = Mutated
