"""Every other commit notes that the half message is done, and the message itself is never stored.

Shows when half messages are committed and their queue is read later.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.parts import Parts
from reference_impl.core.broker.storing import Storing
from reference_impl.core.broker.transactions import Transactions
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage

NAME = "commit-notes-and-moves-nothing"
BUG = "hand-made: the half message is noted as done first, and a failure to store the message is logged only"
SOURCE = "EndTransactionProcessor.processRequest: deletePrepareMessage comes after sendFinalMessage"
KILLED_BY = "SND-13"
EVERY = 2


class HastyTransactions(Transactions):
    def __init__(self, parts: Parts, storing: Storing) -> None:
        super().__init__(parts, storing)
        self._committed = 0

    def commit(self, now_ms: int, half: StoredMessage, out: list[Effect]) -> None:
        self._committed += 1
        if self._committed % EVERY == 0:
            self.close(now_ms, half, out)
        else:
            super().commit(now_ms, half, out)


class Mutated(Broker):
    transactions_class = HastyTransactions


broker = Mutated
