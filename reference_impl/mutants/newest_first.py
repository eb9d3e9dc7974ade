"""Of what is cached, the newest message is delivered first.

Shows as soon as a pull brings two messages of a lane.
"""

from collections import deque

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "newest-first"
BUG = "hand-made from ProcessQueue.takeMessages: the last entry of the tree instead of the first"
SOURCE = "ProcessQueue.msgTreeMap.pollFirstEntry"
KILLED_BY = "ORD-2"


class MutatedLoop(OrderlyLoop):
    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        must_start = pq.put(messages)
        pq.pending = deque(sorted(pq.pending, key=lambda message: -message.queue_offset))
        if must_start:
            self.resubmit(now_ms, pq)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
