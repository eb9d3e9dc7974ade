"""A producer is asked about an open half message for as long as it does not know how its transaction ended.

Shows when a producer answers "unknown" more often than the configured number of times.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.transactions import Transactions

NAME = "asked-for-ever"
BUG = "hand-made: the number of questions is counted, and never compared with its limit"
SOURCE = "TransactionalMessageServiceImpl.needDiscard"
KILLED_BY = "SND-6"


class PatientTransactions(Transactions):
    def is_given_up(self, asked: int) -> bool:
        return False


class Mutated(Broker):
    transactions_class = PatientTransactions


broker = Mutated
