"""Every fifth message is acknowledged with an offset, but waits: the next one of its queue is stored before it.

Shows in any run that sends several messages to one queue, each after the last was acknowledged.
"""

from dataclasses import replace

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

NAME = "later-send-stored-first"
BUG = "B-21, in older form: messages are put into their queue in another order than they were taken in"
SOURCE = "apache/rocketmq issues 467 and 1397"
KILLED_BY = "ORD-9"
EVERY = 5


class LateSending(Sending):
    def __init__(self, parts: Parts, storing: Storing, diversion: Diversion) -> None:
        super().__init__(parts, storing, diversion)
        self._accepted = 0
        self._waiting: dict[tuple[str, int], Draft] = {}

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        place = draft.topic, draft.queue_id
        waiting = self._waiting.pop(place, None)
        if waiting is not None:
            stored = super().accept(now_ms, draft, out)
            super().accept(now_ms, waiting, out)
            return stored
        if (
            draft.topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
            or self._storing.delay_level(draft) > 0
        ):
            return super().accept(now_ms, draft, out)
        self._accepted += 1
        if self._accepted % EVERY:
            return super().accept(now_ms, draft, out)
        self._waiting[place] = draft
        pretended = as_if_stored(self._parts.store, draft, now_ms, self._storing.host)
        return replace(pretended, queue_offset=pretended.queue_offset + 1)


class Mutated(Broker):
    sending_class = LateSending


broker = Mutated
