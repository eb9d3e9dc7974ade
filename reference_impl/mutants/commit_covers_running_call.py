"""With nothing left in the cache, the offset of the next pull is committed, although a call still runs.

Shows when a lane's last message is at the listener while a commit goes out.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.offsets import BrokerOffsets
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "commit-covers-running-call"
BUG = "B-62: messages in flight are not counted, the offset passes them"
SOURCE = "rocketmq-client-cpp before ecfd7d3 (2020)"
KILLED_BY = "CMT-1"


class MutatedOffsets(BrokerOffsets):
    def offset_to_piggyback(self, pq: ProcessQueue) -> int:
        return pq.offset if pq.pending else pq.next_offset


class Mutated(OrderlyConsumer):
    offsets_class = MutatedOffsets


consumer = Mutated
