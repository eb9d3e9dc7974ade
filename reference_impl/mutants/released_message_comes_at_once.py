"""A message that was put back comes again at once, whatever pause was asked for.

Shows when a message fails, and somebody asks within its pause.
"""

from reference_impl.core.leased_queue import LeasedQueue

NAME = "released-message-comes-at-once"
BUG = "hand-made: the pause of a release is not looked at"
SOURCE = "watermill-nats issue 26, by its form: the delay of a negative acknowledgement was never applied"
KILLED_BY = "PML-2"


class Queue(LeasedQueue):
    def release(self, now_ms: int, receipt: str, pause_ms: int = 0) -> bool:
        return super().release(now_ms, receipt, 0)


queue = Queue
