"""A request under a lease that has passed on counts as the present holder's.

Shows when a member stands still for longer than its lease, and acknowledges while the next one works.
"""

from reference_impl.core.leased_queue import Entry, LeasedQueue, State

NAME = "late-acknowledgement-taken"
BUG = "an acknowledgement that came after the lease was taken for that of whoever had the message by then"
SOURCE = "nats-server issue 4786; the warning in its guide (JetStream consumers, AckPolicy)"
KILLED_BY = "PML-3"


class Queue(LeasedQueue):
    def held_under(self, receipt: str) -> Entry | None:
        number = int(receipt.partition("-")[0])
        entry = self.entries[number]
        return entry if entry.state is State.LEASED else None


queue = Queue
