"""The copy of a message that was sent back carries the same counter, so that it never reaches its limit.

Shows at the first send-back.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.send_back import SendBack
from reference_impl.protocol.bodies import SubscriptionGroup
from reference_impl.protocol.headers import SendBackHeader
from reference_impl.protocol.message import StoredMessage

NAME = "send-back-not-counted"
BUG = "the retry copy keeps the counter of its original, and is retried for ever"
SOURCE = "hand-made: AbstractSendMessageProcessor.consumerSendMsgBack without the + 1"
KILLED_BY = "RTY-10"
CONFIG = {"mode": "concurrent"}


class Uncounted(SendBack):
    def copy(
        self, message: StoredMessage, header: SendBackHeader, group: SubscriptionGroup, version: int
    ) -> Draft:
        draft = super().copy(message, header, group, version)
        draft.reconsume_times -= 1
        return draft


class Mutated(Broker):
    send_back_class = Uncounted


broker = Mutated
