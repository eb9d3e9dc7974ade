"""Beside the dead letter, a copy with a new id goes to the topic that the message came from.

Shows at the first message that exhausts its retries: its queue then holds a message that nobody sent.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.send import Sending
from reference_impl.core.io import Effect
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_UNIQ_KEY,
    StoredMessage,
)
from specs.vocabulary import DLQ_PREFIX

NAME = "dead-letter-returns-as-new"
BUG = "B-43 and B-45: a given-up message loses its origin's id and lands in the wrong topic"
SOURCE = "apache/rocketmq issue 4050 (d1b6240c84) and issue 10405"
KILLED_BY = "SND-2"


class InventingSending(Sending):
    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        origin = draft.properties.get(PROPERTY_RETRY_TOPIC)
        if draft.topic.startswith(DLQ_PREFIX) and origin:
            self._storing.store(now_ms, self.copy(draft, origin), out)
        return super().accept(now_ms, draft, out)

    def copy(self, draft: Draft, topic: str) -> Draft:
        gone = (PROPERTY_ORIGIN_MESSAGE_ID, PROPERTY_DELAY)
        properties = {name: value for name, value in draft.properties.items() if name not in gone}
        properties[PROPERTY_UNIQ_KEY] = f"{self._parts.store.end:032X}"
        return Draft(
            topic,
            0,
            draft.body,
            properties,
            draft.flag,
            draft.sys_flag,
            draft.born_ms,
            draft.born_host,
        )


class Mutated(Broker):
    sending_class = InventingSending


broker = Mutated
