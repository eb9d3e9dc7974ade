"""The copy of a message that was sent back lies in the retry topic at once, without waiting for its level.

Shows at the first send-back.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.send_back import SendBack
from reference_impl.protocol.bodies import SubscriptionGroup
from reference_impl.protocol.headers import SendBackHeader
from reference_impl.protocol.message import PROPERTY_DELAY, StoredMessage

NAME = "send-back-without-delay"
BUG = "a message that was sent back comes again at once, and its retries are used up in no time"
SOURCE = "hand-made: AbstractSendMessageProcessor.consumerSendMsgBack without the delay level"
KILLED_BY = "RTY-10"
CONFIG = {"mode": "concurrent"}


class Undelayed(SendBack):
    def copy(
        self, message: StoredMessage, header: SendBackHeader, group: SubscriptionGroup, version: int
    ) -> Draft:
        draft = super().copy(message, header, group, version)
        draft.properties.pop(PROPERTY_DELAY, None)
        return draft


class Mutated(Broker):
    send_back_class = Undelayed


broker = Mutated
