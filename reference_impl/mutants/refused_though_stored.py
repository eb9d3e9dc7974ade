"""A broker with a full disk notices it only after it has stored the message, and refuses it then.

Shows when a message is sent while the disk is full and its queue is read later. The producer was told that nothing
happened, and may send the same work again.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.send import Sending
from reference_impl.core.io import Effect
from reference_impl.protocol.message import StoredMessage

NAME = "refused-though-stored"
BUG = "hand-made from SendMessageProcessor: the check of the disk comes after the append"
SOURCE = "DefaultMessageStore.checkStoreStatus, which comes first"
KILLED_BY = "SND-3"


class LateSending(Sending):
    def check_room(self) -> None:
        """Not yet."""

    def accept(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        stored = super().accept(now_ms, draft, out)
        super().check_room()
        return stored


class Mutated(Broker):
    sending_class = LateSending


broker = Mutated
