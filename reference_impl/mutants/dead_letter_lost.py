"""A dead letter is acknowledged and not stored.

Shows at the first message that exhausts its retries.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.send import Sending
from reference_impl.core.io import Effect
from reference_impl.mutants._pretend import as_if_stored
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import DLQ_PREFIX

NAME = "dead-letter-lost"
BUG = "B-48, broker form: the give-up is acknowledged instead of forwarded to the dead letters"
SOURCE = "apache/rocketmq-clients issue 1266 (323fe200)"
KILLED_BY = "DLQ-1"


class LosingSending(Sending):
    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        if draft.topic.startswith(DLQ_PREFIX):
            return as_if_stored(self._parts.store, draft, now_ms, self._storing.host)
        return super().accept(now_ms, draft, out)


class Mutated(Broker):
    sending_class = LosingSending


broker = Mutated
