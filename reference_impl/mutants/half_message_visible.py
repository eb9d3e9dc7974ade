"""A half message is stored in the topic and queue that it is meant for, at once, instead of out of sight.

Shows when a half message is delivered whose transaction was rolled back, or has not ended yet.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.transactions import Transactions
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage

NAME = "half-message-visible"
BUG = "hand-made: the mark of a half message is overlooked, and it is stored like any other"
SOURCE = "SendMessageProcessor.sendMessage, the branch to asyncPrepareMessage"
KILLED_BY = "SND-6"


class OpenTransactions(Transactions):
    def prepare(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        return self._storing.store(now_ms, draft, out)


class Mutated(Broker):
    transactions_class = OpenTransactions


broker = Mutated
