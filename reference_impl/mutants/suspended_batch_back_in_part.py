"""Of a suspended batch only the last message is put back; the others stay among the taken ones.

Shows whenever a batch of more than one message is suspended.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.results import Back
from reference_impl.protocol.message import StoredMessage

NAME = "suspended-batch-back-in-part"
BUG = "B-33, for a part: messages of a suspended batch are not put back, and a later commit passes them"
SOURCE = "rocketmq-client-go, push_consumer.go; there the whole batch"
KILLED_BY = "RTY-4"
CONFIG = {"batch": 2}


class MutatedLoop(OrderlyLoop):
    def put_back(self, pq: ProcessQueue, batch: list[StoredMessage], back: Back) -> None:
        super().put_back(pq, batch[-1:] if back is Back.BATCH else batch, back)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
