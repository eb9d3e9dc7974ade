"""The end of a transaction releases the half message whether it was a commit or a rollback.

Shows when a half message was rolled back and its topic is read or consumed after that.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.transactions import Transactions
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage

NAME = "rollback-taken-for-commit"
BUG = "hand-made: the flags overlap (8 and 12), and a test for the bit of a commit holds for a rollback too"
SOURCE = "MessageSysFlag: TRANSACTION_COMMIT_TYPE is 0x8, TRANSACTION_ROLLBACK_TYPE is 0xC"
KILLED_BY = "SND-6"


class BitTestingTransactions(Transactions):
    def roll_back(self, now_ms: int, half: StoredMessage, out: list[Effect]) -> None:
        self.commit(now_ms, half, out)


class Mutated(Broker):
    transactions_class = BitTestingTransactions


broker = Mutated
