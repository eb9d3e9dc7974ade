"""A half message about which the broker has asked in vain, as often as it may, goes to its topic.

Shows when nobody says how a transaction ended, until the broker gives it up, and the queue is read later.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.transactions import Transactions
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage

NAME = "given-up-half-is-committed"
BUG = "hand-made: what is given up keeps its own topic instead of that of the given up"
SOURCE = "DefaultTransactionalMessageCheckListener.resolveDiscardMsg, which names TRANS_CHECK_MAX_TIME_TOPIC"
KILLED_BY = "SND-6"


class TrustingTransactions(Transactions):
    def give_up(self, now_ms: int, half: StoredMessage, out: list[Effect]) -> None:
        self.commit(now_ms, half, out)


class Mutated(Broker):
    transactions_class = TrustingTransactions


broker = Mutated
