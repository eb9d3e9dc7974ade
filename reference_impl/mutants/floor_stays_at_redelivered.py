"""The floor stays at a message that was acknowledged as a redelivery, as long as any other is under lease.

Shows when a message is put back once and others are at work for a while after it was acknowledged.
"""

from reference_impl.core.leased_queue import LeasedQueue, State

NAME = "floor-stays-at-redelivered"
BUG = "N-4: a gap that the acknowledgement of a redelivered message filled did not move the floor"
SOURCE = "nats-server pull request 5008"
KILLED_BY = "FLR-2"
CONFIG = {"threads": 3}


class Queue(LeasedQueue):
    def advance(self) -> None:
        entries = self.entries
        if any(entry.state is State.LEASED for entry in entries[self.floor :]):
            first = entries[self.floor] if self.floor < len(entries) else None
            if first is not None and first.state is State.DONE and first.times > 1:
                return
        super().advance()


queue = Queue
