"""Every hand-out of a message tells that it is the first.

Shows as soon as a message comes again.
"""

from reference_impl.core.leased_queue import Entry, LeasedQueue

NAME = "delivery-count-always-zero"
BUG = "the count of redeliveries that a consumer is told stays 0"
SOURCE = "apache/pulsar issue 15836 (exclusive and failover subscriptions); issue 8722: 0 after a reconnection"
KILLED_BY = "PML-4"


class Queue(LeasedQueue):
    def times_told(self, entry: Entry) -> int:
        return 0


queue = Queue
