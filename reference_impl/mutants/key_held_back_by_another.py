"""Keys are dealt to two lines by their hash, as to fixed workers: a key that is stuck holds back every key of its line.

Shows when the first message of a key lies behind a failed one of another key, and a third key goes on.
"""

from zlib import crc32

from reference_impl.core.consumer import KeyOrderedConsumer
from reference_impl.core.consumer.key_ordered import KeyOrderedLoop
from reference_impl.protocol.message import StoredMessage

NAME = "key-held-back-by-another"
BUG = "a key that is stuck holds back the others that fall onto its worker"
SOURCE = "hand-made: a worker for each hash of a key, which waits while its message is suspended"
KILLED_BY = "ORD-11"
CONFIG = {"mode": "key_ordered"}


class MutatedLoop(KeyOrderedLoop):
    def key_of(self, message: StoredMessage) -> str | None:
        key = message.sharding_key
        return None if key is None else str(crc32(key.encode()) % 2)


class Mutated(KeyOrderedConsumer):
    loop_class = MutatedLoop


consumer = Mutated
