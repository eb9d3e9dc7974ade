"""A lease whose time is over is not taken back.

Shows when a member dies, or its request is lost.
"""

from reference_impl.core.leased_queue import LeasedQueue

NAME = "ended-lease-keeps-the-message"
BUG = "messages that were not acknowledged in time can't be fetched again, though the stream holds them"
SOURCE = "nats-server issue 6905"
KILLED_BY = "PML-5"


class Queue(LeasedQueue):
    def expire(self, now_ms: int) -> None:
        self.advance()


queue = Queue
