"""The client takes what the broker sends for what it asked for, and does not compare the tags.

Shows when the tag of a message has the hash code of a wanted one, as `BB` and `Aa`.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import LeasedPulling
from reference_impl.protocol.message import StoredMessage

NAME = "tags-not-compared"
BUG = "hand-made from PullAPIWrapper.processPullResult: the client's own filter is left out"
SOURCE = "PullAPIWrapper.processPullResult, `msgListFilterAgain`"
KILLED_BY = "SND-8"
CONFIG = {"subscription": "Aa || red"}


class MutatedPulling(LeasedPulling):
    def wanted(self, pq: ProcessQueue, messages: list[StoredMessage]) -> list[StoredMessage]:
        return messages


class Mutated(OrderlyConsumer):
    pulling_class = MutatedPulling


consumer = Mutated
