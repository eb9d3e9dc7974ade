"""A message that was given up comes again with the rest of its batch, and is sent to the dead letters again.

Shows where a batch holds an exhausted message and one that has tries left; needs a limit and batches.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "given-up-with-its-batch-again"
BUG = "B-77 b: a batch of which one message is exhausted is put back as a whole, and that message given up each time"
SOURCE = (
    "ConsumeMessageOrderlyService.checkReconsumeTimes; measured with clients 4.9.8, 5.4.0 and 5.5.0"
)
KILLED_BY = "DLQ-10"
CONFIG = {"max_reconsume_times": 1, "batch": 2}


class MutatedLoop(OrderlyLoop):
    def is_handed_on(self, pq: ProcessQueue, message: StoredMessage) -> bool:
        return False


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
