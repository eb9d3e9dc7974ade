"""A suspended batch is not put back: after the pause the lane goes on with the next message.

Shows whenever a listener suspends and more messages follow; the suspended one is lost by the next commit.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.results import Back
from reference_impl.protocol.message import StoredMessage

NAME = "suspend-moves-on"
BUG = "B-33: messages of a suspended batch stay among the taken ones"
SOURCE = "rocketmq-client-go issue 650 (2021)"
KILLED_BY = "ORD-3"


class MutatedLoop(OrderlyLoop):
    def put_back(self, pq: ProcessQueue, batch: list[StoredMessage], back: Back) -> None:
        pass


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
