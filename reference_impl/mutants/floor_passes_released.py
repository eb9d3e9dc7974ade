"""The floor follows the highest acknowledgement.

Shows when a message is acknowledged while one before it is under lease, or was put back.
"""

from reference_impl.core.leased_queue import LeasedQueue, State

NAME = "floor-passes-released"
BUG = "the acknowledgement floor was ahead of a message that was put back, which never came again"
SOURCE = "nats-server issue 5727"
KILLED_BY = "FLR-1"
CONFIG = {"threads": 3}


class Queue(LeasedQueue):
    def advance(self) -> None:
        super().advance()
        done = [at for at, entry in enumerate(self.entries) if entry.state is State.DONE]
        self.floor = max(self.floor, max(done, default=-1) + 1)


queue = Queue
