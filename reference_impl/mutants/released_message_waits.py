"""A message that was put back comes again only after a long while.

Shows when a message fails, and somebody asks meanwhile.
"""

from reference_impl.core.leased_queue import LeasedQueue

NAME = "released-message-waits"
BUG = "hand-made: a message that was put back gets the pause of many leases instead of its own"
SOURCE = "nats.net issue 793, by its form: messages came again after another time than the one that was set"
KILLED_BY = "PML-5"
LEASES = 8


class Queue(LeasedQueue):
    def release(self, now_ms: int, receipt: str, pause_ms: int = 0) -> bool:
        return super().release(now_ms, receipt, LEASES * self.lease_ms)


queue = Queue
