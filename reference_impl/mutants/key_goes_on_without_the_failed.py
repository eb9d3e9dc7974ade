"""A message that failed goes to the end of its key's line, so that the key's later messages overtake it.

Shows when a message fails while another one of its key waits.
"""

from reference_impl.core.consumer import KeyOrderedConsumer
from reference_impl.core.consumer.key_ordered import KeyOrderedLoop
from reference_impl.core.consumer.unfinished_queue import UnfinishedQueue
from reference_impl.protocol.message import StoredMessage

NAME = "key-goes-on-without-the-failed"
BUG = "a failed message is put behind those of its key that wait"
SOURCE = "hand-made: a retry that is appended to the key's line instead of its head"
KILLED_BY = "ORD-11"
CONFIG = {"mode": "key_ordered"}


class MutatedLoop(KeyOrderedLoop):
    def come_again(self, pq: UnfinishedQueue, kept: list[StoredMessage], pause_ms: int) -> None:
        super().come_again(pq, kept, pause_ms)
        key = self.key_of(kept[0])
        if key is not None:
            pq.lines[key].rotate(-len(kept))


class Mutated(KeyOrderedConsumer):
    loop_class = MutatedLoop


consumer = Mutated
