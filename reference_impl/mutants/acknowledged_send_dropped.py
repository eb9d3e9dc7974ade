"""Every seventh message is acknowledged with the offset that the next one will get, and is lost.

Shows in any run that sends more than a few messages.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.parts import Parts
from reference_impl.core.broker.send import Sending
from reference_impl.core.broker.storing import Storing
from reference_impl.core.io import Effect
from reference_impl.mutants._pretend import as_if_stored
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX

NAME = "acknowledged-send-dropped"
BUG = "B-21: two messages get one offset, and the first of them is lost"
SOURCE = "apache/rocketmq issue 7511, mended by ead3d90501"
KILLED_BY = "SND-1"
EVERY = 7


class DroppingSending(Sending):
    def __init__(self, parts: Parts, storing: Storing, diversion: Diversion) -> None:
        super().__init__(parts, storing, diversion)
        self._accepted = 0

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        if draft.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            return super().accept(now_ms, draft, out)
        self._accepted += 1
        if self._accepted % EVERY == 0:
            return as_if_stored(self._parts.store, draft, now_ms, self._storing.host)
        return super().accept(now_ms, draft, out)


class Mutated(Broker):
    sending_class = DroppingSending


broker = Mutated
