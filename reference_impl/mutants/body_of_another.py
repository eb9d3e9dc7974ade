"""Every fifth message is stored with the body of the one before: a buffer was used again too early.

Shows in any run that sends more than a few messages.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.parts import Parts
from reference_impl.core.broker.send import Sending
from reference_impl.core.broker.storing import Storing
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX

NAME = "body-of-another"
BUG = "hand-made from PutMessageThreadLocal: a thread's encoding buffer is filled before the last message was copied"
SOURCE = "CommitLog.PutMessageThreadLocal"
KILLED_BY = "SND-10"
EVERY = 5


class MixingSending(Sending):
    def __init__(self, parts: Parts, storing: Storing, diversion: Diversion) -> None:
        super().__init__(parts, storing, diversion)
        self._accepted = 0
        self._last = b""

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        if draft.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            return super().accept(now_ms, draft, out)
        self._accepted += 1
        body, self._last = self._last, draft.body
        if self._accepted % EVERY == 0:
            draft.body = body
        return super().accept(now_ms, draft, out)


class Mutated(Broker):
    sending_class = MixingSending


broker = Mutated
