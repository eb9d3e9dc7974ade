"""Of the lanes that wait for a thread the one that came last is the first to get one.

Shows where a client has one thread and at least three lanes with work for longer than the cap.
"""

from reference_impl.core.consumer import OrderlyConsumer

NAME = "last-in-line-is-first"
BUG = "hand-made: the line of those who wait for a thread is a stack"
SOURCE = "ConsumeMessageOrderlyService.consumeRequestQueue, a LinkedBlockingQueue"
KILLED_BY = "LIV-3"


class Mutated(OrderlyConsumer):
    def use_threads(self, now_ms: int) -> None:
        while self.free_threads and self.in_line:
            self.free_threads -= 1
            self._enter(now_ms, self.in_line.pop())


consumer = Mutated
