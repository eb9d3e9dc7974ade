"""The cap on continuous work is measured from the last call, not from the first: a busy lane keeps its thread.

Shows where a client has more lanes than threads, and one of them has work for longer than the cap.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "turn-never-ends"
BUG = "B-36: the begin of the turn is set anew in every round, so that the limit never fires"
SOURCE = "rocketmq-client-go, push_consumer.go"
KILLED_BY = "LIV-3"


class MutatedLoop(OrderlyLoop):
    def turn(self, now_ms: int, pq: ProcessQueue) -> None:
        pq.loop_began_ms = now_ms
        super().turn(now_ms, pq)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
