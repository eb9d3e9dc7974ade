"""Every ninth message is appended twice, though it came once: the append is tried again after it had succeeded.

Shows in any run that sends more than a few messages and reads their queues.
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

NAME = "stored-twice-at-once"
BUG = "hand-made: an append that rolls to a new file is repeated there, though the old file had room for it"
SOURCE = "CommitLog.asyncPutMessage, END_OF_FILE: the append is repeated where nothing was appended"
KILLED_BY = "SND-2"
EVERY = 9


class RepeatingSending(Sending):
    def __init__(self, parts: Parts, storing: Storing, diversion: Diversion) -> None:
        super().__init__(parts, storing, diversion)
        self._accepted = 0

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        again = Draft(
            draft.topic,
            draft.queue_id,
            draft.body,
            dict(draft.properties),
            draft.flag,
            draft.sys_flag,
            draft.born_ms,
            draft.born_host,
            draft.reconsume_times,
        )
        stored = super().accept(now_ms, draft, out)
        if not draft.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            self._accepted += 1
            if self._accepted % EVERY == 0:
                super().accept(now_ms, again, out)
        return stored


class Mutated(Broker):
    sending_class = RepeatingSending


broker = Mutated
