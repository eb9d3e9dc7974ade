"""The last message of a batch is stored after the next message that comes.

Shows when something else is sent to the queue of a batch soon after it.
"""

from collections.abc import Sequence

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.parts import Parts
from reference_impl.core.broker.send import Sending
from reference_impl.core.broker.storing import Storing
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage

NAME = "batch-taken-apart"
BUG = "hand-made from CommitLog.asyncPutMessages: the lock is given up between two messages of a batch"
SOURCE = "CommitLog.asyncPutMessages, which appends a batch under one lock"
KILLED_BY = "SND-5"


class HastySending(Sending):
    def __init__(self, parts: Parts, storing: Storing, diversion: Diversion) -> None:
        super().__init__(parts, storing, diversion)
        self._late: list[Draft] = []

    def accept_batch(
        self, now_ms: int, drafts: Sequence[Draft], out: list[Effect]
    ) -> list[StoredMessage]:
        self._store_late(now_ms, out)
        self._late.append(drafts[-1])
        return super().accept_batch(now_ms, drafts[:-1] or drafts, out)

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        stored = super().accept(now_ms, draft, out)
        self._store_late(now_ms, out)
        return stored

    def _store_late(self, now_ms: int, out: list[Effect]) -> None:
        while self._late:
            self._storing.store(now_ms, self._late.pop(), out)


class Mutated(Broker):
    sending_class = HastySending


broker = Mutated
