"""The offset after a batch's first message is committed instead of that after its last.

Shows when a batch holds more than one message.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "first-of-batch-committed"
BUG = "hand-made from ProcessQueue.commit: the first key of the consuming map instead of the last"
SOURCE = "ProcessQueue.commit"
KILLED_BY = "CMT-2"
CONFIG = {"batch": 4}


class MutatedLoop(OrderlyLoop):
    def commit_batch(self, pq: ProcessQueue) -> None:
        first = min(pq.taken)
        pq.commit()
        self.consumer.offsets.store_offset(pq, first + 1)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
