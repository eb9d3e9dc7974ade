"""The lease is looked at when a lane gets its thread, and not again between two calls.

Shows when a lane has so many messages that its task outlives the last grant while the renewals fail.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "loop-without-guard"
BUG = "B-40: no look at the lock inside the loop"
SOURCE = "rocketmq-client-cpp, ConsumeMessageOrderlyService"
KILLED_BY = "LSE-3"


class MutatedLoop(OrderlyLoop):
    def turn(self, now_ms: int, pq: ProcessQueue) -> None:
        kept = pq.locked, pq.last_lock_ms
        pq.locked, pq.last_lock_ms = True, now_ms
        super().turn(now_ms, pq)
        pq.locked, pq.last_lock_ms = kept


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
