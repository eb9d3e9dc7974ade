"""A message is given up one delivery too late.

Shows where there is a limit, and a message fails as often.
"""

from reference_impl.core.leased_queue import Entry, LeasedQueue

NAME = "delivery-beyond-the-limit"
BUG = "hand-made: the limit is compared with the redeliveries that were made before the last one"
SOURCE = "B-32, by its form: rocketmq-client-go gives N+2 deliveries"
KILLED_BY = "PML-4"
CONFIG = {"max_reconsume_times": 1}


class Queue(LeasedQueue):
    def put_back(self, entry: Entry, until_ms: int) -> None:
        entry.times -= 1
        super().put_back(entry, until_ms)
        entry.times += 1


queue = Queue
