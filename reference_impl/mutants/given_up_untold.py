"""A message that was handed out as often as it may be is passed over, and nobody is told.

Shows where there is a limit, and a message fails as often.
"""

from reference_impl.core.leased_queue import Entry, LeasedQueue, State

NAME = "given-up-untold"
BUG = "a message beyond its limit of deliveries is archived, and lies in no dead-letter queue"
SOURCE = "KIP-932: a record whose attempts are used up is archived; its dead-letter queue is a later proposal"
KILLED_BY = "PML-6"
CONFIG = {"max_reconsume_times": 1}


class Queue(LeasedQueue):
    def put_back(self, entry: Entry, until_ms: int) -> None:
        super().put_back(entry, until_ms)
        if entry.state is State.GIVEN_UP:
            self.given_up.pop()


queue = Queue
