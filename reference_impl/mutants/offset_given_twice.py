"""Every fifth message is stored with the offset of the message before it.

Shows in any run that sends more than a few messages: the producers of both are told the same place.
"""

from dataclasses import replace

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.parts import Parts
from reference_impl.core.broker.send import Sending
from reference_impl.core.broker.storing import Storing
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage, encode
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC

NAME = "offset-given-twice"
BUG = "B-21: the offset of a queue is read and counted up by two threads at once, and two messages get the same one"
SOURCE = "apache/rocketmq issues 7511 and 8762, mended by ead3d90501"
KILLED_BY = "ORD-7"
EVERY = 5


class TwiceSending(Sending):
    def __init__(self, parts: Parts, storing: Storing, diversion: Diversion) -> None:
        super().__init__(parts, storing, diversion)
        self._accepted = 0

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        stored = super().accept(now_ms, draft, out)
        if (
            stored.topic.startswith((RETRY_PREFIX, DLQ_PREFIX, SCHEDULE_TOPIC))
            or not stored.queue_offset
        ):
            return stored
        self._accepted += 1
        if self._accepted % EVERY:
            return stored
        queue = self._parts.store.queue(stored.topic, stored.queue_id)
        queue.messages[-1] = replace(stored, queue_offset=stored.queue_offset - 1)
        queue.records[-1] = encode(queue.messages[-1])
        return queue.messages[-1]


class Mutated(Broker):
    sending_class = TwiceSending


broker = Mutated
