"""A consumer that should keep keys in order does not look at them: every message goes as soon as a thread is free.

Shows when two messages of a key are there at the same time.
"""

from reference_impl.core.consumer import KeyOrderedConsumer
from reference_impl.core.consumer.key_ordered import KeyOrderedLoop
from reference_impl.protocol.message import StoredMessage

NAME = "key-not-looked-at"
BUG = "B-76: a group that should consume in order consumes concurrently, without a word"
SOURCE = "apache/rocketmq issue 8154, rocketmq-clients issues 599, 754 and 755"
KILLED_BY = "ORD-11"
CONFIG = {"mode": "key_ordered"}


class MutatedLoop(KeyOrderedLoop):
    def key_of(self, message: StoredMessage) -> str | None:
        return None


class Mutated(KeyOrderedConsumer):
    loop_class = MutatedLoop


consumer = Mutated
