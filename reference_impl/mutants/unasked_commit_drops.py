"""A commit that nobody has asked for drops the half message; only the answer to a question releases it.

Shows when a half message is committed at once and its queue is read later.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.transactions import Transactions
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import EndTransactionHeader
from reference_impl.protocol.message import StoredMessage

NAME = "unasked-commit-drops"
BUG = "hand-made: the test for an answer to a question is turned round, and its branch is that of a rollback"
SOURCE = "EndTransactionProcessor.processRequest, the branches of fromTransactionCheck"
KILLED_BY = "SND-13"


class SuspiciousTransactions(Transactions):
    def end(self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]) -> Command | None:
        header = EndTransactionHeader.from_ext(request.ext)
        self._is_answer = header.from_transaction_check
        return super().end(now_ms, conn, request, out)

    def commit(self, now_ms: int, half: StoredMessage, out: list[Effect]) -> None:
        if self._is_answer:
            super().commit(now_ms, half, out)
        else:
            self.roll_back(now_ms, half, out)


class Mutated(Broker):
    transactions_class = SuspiciousTransactions


broker = Mutated
