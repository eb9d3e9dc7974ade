"""Before every fifth message one offset of its queue is used up for nothing.

Shows in any run that sends more than a few messages and reads the queues at its end.
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

NAME = "offset-skipped"
BUG = "hand-made: an offset is counted up for a message that could not be written, and is not given back"
SOURCE = "ConsumeQueueStore.assignQueueOffset and increaseQueueOffset, which exist so that it does not happen"
KILLED_BY = "ORD-8"
EVERY = 5


class SkippingSending(Sending):
    def __init__(self, parts: Parts, storing: Storing, diversion: Diversion) -> None:
        super().__init__(parts, storing, diversion)
        self._accepted = 0

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        store = self._parts.store
        queue = store.queue(draft.topic, draft.queue_id)
        if queue.max_offset and not draft.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            self._accepted += 1
            if self._accepted % EVERY == 0:
                queue.messages.append(as_if_stored(store, draft, now_ms, self._storing.host))
                queue.records.append(b"")
                queue.tag_codes.append(0)
        return super().accept(now_ms, draft, out)


class Mutated(Broker):
    sending_class = SkippingSending


broker = Mutated
