"""A half message that is committed is moved to the first queue of its topic, whichever one its producer had chosen.

Shows when a half message is meant for another queue, and is read or consumed after its commit.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.transactions import Transactions
from reference_impl.protocol.message import StoredMessage

NAME = "committed-to-the-first-queue"
BUG = "hand-made: the property with the real queue is written and not read"
SOURCE = "EndTransactionProcessor.endMessageTransaction, which reads PROPERTY_REAL_QUEUE_ID"
KILLED_BY = "SND-12"


class LevellingTransactions(Transactions):
    def released(self, half: StoredMessage) -> Draft:
        draft = super().released(half)
        draft.queue_id = 0
        return draft


class Mutated(Broker):
    transactions_class = LevellingTransactions


broker = Mutated
