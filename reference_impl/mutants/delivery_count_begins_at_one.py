"""The first hand-out of a message tells of one before.

Shows at once.
"""

from reference_impl.core.leased_queue import Entry, LeasedQueue

NAME = "delivery-count-begins-at-one"
BUG = "hand-made: a count of hand-outs is told where a count of redeliveries was promised"
SOURCE = (
    "Admiral-Piett/goaws issue 263, by its form: the first receive counts otherwise than in SQS"
)
KILLED_BY = "PML-4"


class Queue(LeasedQueue):
    def times_told(self, entry: Entry) -> int:
        return entry.times + 1


queue = Queue
