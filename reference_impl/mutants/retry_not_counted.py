"""A redelivered message carries the counter that it had before.

Shows whenever a listener suspends; an exhausted message is never given up.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "retry-not-counted"
BUG = "B-28, B-40: the counter is not increased before the next try"
SOURCE = "RocketMQ issue 6163 (5.0.0, 5.1.0 sent the counter as it was); rocketmq-client-cpp never counts"
KILLED_BY = "RTY-3"


class MutatedLoop(OrderlyLoop):
    def count_retry(self, pq: ProcessQueue, message: StoredMessage) -> None:
        pass


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
