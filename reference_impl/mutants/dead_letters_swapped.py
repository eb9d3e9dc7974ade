"""Dead letters are stored in pairs, the later one first; the first of each pair is acknowledged before.

Shows when two messages of one lane are given up.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.send import Sending
from reference_impl.core.io import Effect
from reference_impl.mutants._pretend import as_if_stored
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import DLQ_PREFIX

NAME = "dead-letters-swapped"
BUG = "hand-made: acknowledged dead letters wait in a buffer that is written the wrong way round"
SOURCE = "SendMessageProcessor; the commit log keeps the order of arrival"
KILLED_BY = "DLQ-4"
CONFIG = {"max_reconsume_times": 1}


class SwappingSending(Sending):
    held: Draft | None = None

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        if not draft.topic.startswith(DLQ_PREFIX):
            return super().accept(now_ms, draft, out)
        if self.held is None:
            self.held = draft
            return as_if_stored(self._parts.store, draft, now_ms, self._storing.host)
        first, self.held = self.held, None
        stored = super().accept(now_ms, draft, out)
        super().accept(now_ms, first, out)
        return stored


class Mutated(Broker):
    sending_class = SwappingSending


broker = Mutated
