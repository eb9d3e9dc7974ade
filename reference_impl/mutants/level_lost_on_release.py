"""A delayed message that is released no longer says with which level it was sent.

Shows at the first message with a delay level that is delivered.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.storing import Storing
from reference_impl.protocol.message import PROPERTY_DELAY, StoredMessage

NAME = "level-lost-on-release"
BUG = "a delayed message is delivered without the level that it was sent with, so nobody can tell that it was delayed"
SOURCE = "ScheduleMessageService.messageTimeup: the level is cleared after the properties were packed, not before"
KILLED_BY = "SND-10"


class ForgetfulStoring(Storing):
    def released(self, waiting: StoredMessage) -> Draft:
        draft = super().released(waiting)
        draft.properties.pop(PROPERTY_DELAY, None)
        return draft


class Mutated(Broker):
    storing_class = ForgetfulStoring


broker = Mutated
