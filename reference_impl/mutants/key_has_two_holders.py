"""The next message of a key is handed to another member while the one before it is still out.

Shows as soon as more than one message of a lane may be under lease at once, and two of them have one key.
"""

from reference_impl.core.leased_queue import Entry, LeasedQueue

NAME = "key-has-two-holders"
BUG = "a consumer that had joined was given messages of a key whose former ones another consumer had not acknowledged"
SOURCE = "apache/pulsar issue 20179: Key_Shared out of order by recently joined consumers (PIP-282)"
KILLED_BY = "KEY-1"
CONFIG = {"threads": 3}


class Queue(LeasedQueue):
    def key_is_anothers(self, wanted: Entry, member: str) -> bool:
        return False


queue = Queue
