"""In manual mode a SUCCESS is committed as in auto mode.

Shows when a listener in manual mode keeps its messages uncommitted while a commit goes out.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.results import Back
from reference_impl.protocol.message import StoredMessage

NAME = "manual-success-committed"
BUG = "hand-made, after B-34: the result is looked up without the commit mode"
SOURCE = (
    "the table of ConsumeMessageOrderlyService.processConsumeResult, its two halves taken for one"
)
KILLED_BY = "CMT-3"


class MutatedLoop(OrderlyLoop):
    def put_back(self, pq: ProcessQueue, batch: list[StoredMessage], back: Back) -> None:
        super().put_back(pq, batch, back)
        if back is Back.NONE:
            self.commit_batch(pq)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
