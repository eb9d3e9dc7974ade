"""The offset passes a batch that was suspended and comes again.

Shows when a commit goes out while a batch is suspended.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.results import Back
from reference_impl.protocol.message import StoredMessage

NAME = "commit-though-suspended"
BUG = "B-37: a result that asks for a retry is committed all the same"
SOURCE = "rocketmq-client-go, push_consumer.go (the offset is updated whatever the result)"
KILLED_BY = "CMT-1"


class MutatedLoop(OrderlyLoop):
    def put_back(self, pq: ProcessQueue, batch: list[StoredMessage], back: Back) -> None:
        super().put_back(pq, batch, back)
        self.consumer.offsets.store_offset(pq, batch[-1].queue_offset + 1)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
