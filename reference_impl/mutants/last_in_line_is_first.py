"""Of the lanes that wait for a thread the one that came last is the first to get one.

Shows where a client has one thread and at least three lanes with work for longer than the cap.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop

NAME = "last-in-line-is-first"
BUG = "hand-made: the line of those who wait for a thread is a stack"
SOURCE = "ConsumeMessageOrderlyService.consumeRequestQueue, a LinkedBlockingQueue"
KILLED_BY = "LIV-3"


class MutatedLoop(OrderlyLoop):
    def use_threads(self, now_ms: int) -> None:
        while self.consumer.calls.free_threads and self.in_line:
            self.consumer.calls.free_threads -= 1
            self.enter(now_ms, self.in_line.pop())


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
