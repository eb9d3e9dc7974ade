"""A dead letter is stored twice, and acknowledged once.

Shows at the first message that exhausts its retries.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.send import Sending
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import DLQ_PREFIX

NAME = "dead-letter-stored-twice"
BUG = "B-77 b, broker form: one given-up message, two dead letters"
SOURCE = "measured on released clients with batches of two; here for a batch of one"
KILLED_BY = "DLQ-2"


class TwiceSending(Sending):
    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        if draft.topic.startswith(DLQ_PREFIX):
            super().accept(now_ms, draft, out)
        return super().accept(now_ms, draft, out)


class Mutated(Broker):
    sending_class = TwiceSending


broker = Mutated
