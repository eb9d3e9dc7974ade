"""A message that somebody has is handed to another member who asks.

Shows as soon as somebody asks while a call runs.
"""

from reference_impl.core.leased_queue import Entry, LeasedQueue, State

NAME = "message-has-two-holders"
BUG = "a share group's offsets were acquired twice"
SOURCE = "KAFKA-19789: duplicate acquired offsets in a share fetch's answer"
KILLED_BY = "PML-1"


class Queue(LeasedQueue):
    def is_free(self, entry: Entry, now_ms: int, member: str) -> bool:
        is_anothers = entry.state is State.LEASED and entry.member != member
        return is_anothers or super().is_free(entry, now_ms, member)


queue = Queue
