"""A batch is stored behind what is left of the one before: that one's last message, once more.

Shows when a broker is sent two batches and their queues are read.
"""

from collections.abc import Sequence
from dataclasses import replace

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.parts import Parts
from reference_impl.core.broker.send import Sending
from reference_impl.core.broker.storing import Storing
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage

NAME = "batch-begins-with-the-last-one"
BUG = "hand-made: the buffer in which batches are encoded is not empty when the next one comes"
SOURCE = "CommitLog.MessageExtEncoder, which a thread uses again for each batch and has to clear"
KILLED_BY = "SND-2"


class BufferedSending(Sending):
    def __init__(self, parts: Parts, storing: Storing, diversion: Diversion) -> None:
        super().__init__(parts, storing, diversion)
        self._left: Draft | None = None

    def accept_batch(
        self, now_ms: int, drafts: Sequence[Draft], out: list[Effect]
    ) -> list[StoredMessage]:
        if self._left is not None:
            self._storing.store(now_ms, self._left, out)
        self._left = replace(drafts[-1], properties=dict(drafts[-1].properties))
        return super().accept_batch(now_ms, drafts, out)


class Mutated(Broker):
    sending_class = BufferedSending


broker = Mutated
