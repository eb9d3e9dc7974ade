"""Each pulled batch starts a consuming task of its own, whether or not one runs.

Shows when messages arrive while a call of their lane runs.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "two-tasks-per-lane"
BUG = "B-25: the next task is submitted although the last one has not finished"
SOURCE = "rocketmq-clients #382 (88998c2f, 2021, C++)"
KILLED_BY = "ORD-3"


class MutatedLoop(OrderlyLoop):
    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        pq.put(messages)
        self.resubmit(now_ms, pq)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
