"""The commit that travels with a pull names the first offset that the lane ever had to report.

Shows as soon as a report has gone out on its own, each persist interval, and another pull follows.
"""

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.offsets import BrokerOffsets
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "pull-commits-old-offset"
BUG = "B-58: the pull carries an offset that was remembered when its chain began"
SOURCE = "rocketmq-client-go #832, #927 (offsets of a remembered pull request)"
KILLED_BY = "CMT-4"


class MutatedOffsets(BrokerOffsets):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.first: dict[int, int] = {}

    def offset_to_piggyback(self, pq: ProcessQueue) -> int:
        return self.first.setdefault(pq.serial, pq.offset) if pq.offset > 0 else pq.offset


class Mutated(OrderlyConsumer):
    offsets_class = MutatedOffsets


consumer = Mutated
