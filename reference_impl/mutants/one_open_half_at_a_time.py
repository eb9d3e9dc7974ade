"""The broker remembers one open half message of each producer group: the next one takes the place of the last.

Shows when a producer group has two half messages open at a time and commits both.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.topics import HALF_TOPIC
from reference_impl.core.broker.transactions import Transactions
from reference_impl.core.io import Effect
from reference_impl.protocol.message import PROPERTY_PRODUCER_GROUP, StoredMessage

NAME = "one-open-half-at-a-time"
BUG = "hand-made: the table of open transactions is keyed by the producer's group"
SOURCE = "TransactionalMessageServiceImpl: every half message is open by itself, at its place in the half topic"
KILLED_BY = "SND-13"


class CrampedTransactions(Transactions):
    def prepare(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        stored = super().prepare(now_ms, draft, out)
        store = self._parts.store
        group = stored.properties.get(PROPERTY_PRODUCER_GROUP)
        for offset in [offset for offset in store.open_halves if offset != stored.queue_offset]:
            half = store.queue(HALF_TOPIC, 0).get(offset)
            if half is not None and half.properties.get(PROPERTY_PRODUCER_GROUP) == group:
                del store.open_halves[offset]
        return stored


class Mutated(Broker):
    transactions_class = CrampedTransactions


broker = Mutated
