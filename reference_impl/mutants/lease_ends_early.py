"""A lease ends after a quarter of its time.

Shows as soon as a call lasts so long, or a member stands still, while somebody asks.
"""

from reference_impl.core.leased_queue import HandOut, LeasedQueue

NAME = "lease-ends-early"
BUG = (
    "hand-made: the timer of a lease is set by another number than the one that its holder is told"
)
SOURCE = "JetStream consumers, BackOff: its first number takes the place of AckWait"
KILLED_BY = "PML-2"


class Queue(LeasedQueue):
    def receive(self, now_ms: int, member: str) -> HandOut | None:
        handed = super().receive(now_ms, member)
        if handed is not None:
            self.entries[handed.offset].until_ms = now_ms + self.lease_ms // 4
        return handed


queue = Queue
