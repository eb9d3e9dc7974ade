"""What a listener rolls back in manual mode is not delivered again: it stays among the taken messages.

Shows at the first ROLLBACK in manual mode with another message to come.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.results import Back
from reference_impl.protocol.message import StoredMessage

NAME = "rollback-forgotten"
BUG = "B-33: a manual ROLLBACK does not put the messages back, and a later COMMIT passes them"
SOURCE = "rocketmq-client-go, push_consumer.go"
KILLED_BY = "RTY-9"


class MutatedLoop(OrderlyLoop):
    def put_back(self, pq: ProcessQueue, batch: list[StoredMessage], back: Back) -> None:
        if back is not Back.TAKEN:
            super().put_back(pq, batch, back)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
