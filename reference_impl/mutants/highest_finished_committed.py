"""Where calls run side by side, the offset moves behind whatever has just been finished.

Shows when a later message is finished before an earlier one.
"""

from collections.abc import Sequence

from reference_impl.core.consumer import ConcurrentConsumer
from reference_impl.core.consumer.concurrent import ConcurrentLoop
from reference_impl.core.consumer.unfinished_queue import UnfinishedQueue
from reference_impl.protocol.message import StoredMessage

NAME = "highest-finished-committed"
BUG = "the end of the finished batch is committed, not the smallest unfinished offset"
SOURCE = (
    "hand-made: ProcessQueue.removeMessage answers the batch's end instead of the tree's first key"
)
KILLED_BY = "CMT-10"
CONFIG = {"mode": "concurrent"}


class MutatedLoop(ConcurrentLoop):
    def finish(self, pq: UnfinishedQueue, batch: Sequence[StoredMessage]) -> None:
        super().finish(pq, batch)
        if batch:
            self.consumer.offsets.store_offset(pq, batch[-1].queue_offset + 1)


class Mutated(ConcurrentConsumer):
    loop_class = MutatedLoop


consumer = Mutated
