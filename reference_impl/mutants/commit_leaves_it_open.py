"""A half message that its producer commits unasked stays open: it is asked about all the same, and stored once more.

Shows when a half message was committed at once, and the broker's question is answered by a commit.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.transactions import Transactions
from reference_impl.core.io import ConnId, Effect
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import EndTransactionHeader
from reference_impl.protocol.message import StoredMessage

NAME = "commit-leaves-it-open"
BUG = "hand-made: what notes that a half message is done is only called where it was asked about"
SOURCE = (
    "EndTransactionProcessor.processRequest, which calls deletePrepareMessage after every commit"
)
KILLED_BY = "SND-2"


class ForgetfulTransactions(Transactions):
    def end(self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]) -> Command | None:
        self._is_answer = EndTransactionHeader.from_ext(request.ext).from_transaction_check
        return super().end(now_ms, conn, request, out)

    def commit(self, now_ms: int, half: StoredMessage, out: list[Effect]) -> None:
        if self._is_answer:
            super().commit(now_ms, half, out)
        else:
            self._storing.append(now_ms, self.released(half), out)


class Mutated(Broker):
    transactions_class = ForgetfulTransactions


broker = Mutated
