"""A delayed message is moved to the first queue of its topic, whichever one its producer had chosen.

Shows when a delayed message is meant for another queue, and is read or consumed later.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.storing import Storing
from reference_impl.protocol.message import StoredMessage

NAME = "delayed-to-the-first-queue"
BUG = "hand-made: the property with the real queue is written and not read"
SOURCE = "ScheduleMessageService.messageTimeup, which reads PROPERTY_REAL_QUEUE_ID"
KILLED_BY = "SND-12"


class LevellingStoring(Storing):
    def released(self, waiting: StoredMessage) -> Draft:
        draft = super().released(waiting)
        draft.queue_id = 0
        return draft


class Mutated(Broker):
    storing_class = LevellingStoring


broker = Mutated
