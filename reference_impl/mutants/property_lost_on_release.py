"""A delayed message loses a user property on its release: the protocol's own are copied one by one, and nothing else.

Shows at the first message with a delay level that is delivered.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.storing import Storing
from reference_impl.protocol.message import StoredMessage, own_properties

NAME = "property-lost-on-release"
BUG = "hand-made: of a delayed message the properties that the broker knows are copied, and not the application's"
SOURCE = "ScheduleMessageService.messageTimeup, which copies all properties (MessageAccessor.setProperties)"
KILLED_BY = "SND-10"


class NarrowStoring(Storing):
    def released(self, waiting: StoredMessage) -> Draft:
        draft = super().released(waiting)
        for name in own_properties(draft.properties):
            del draft.properties[name]
        return draft


class Mutated(Broker):
    storing_class = NarrowStoring


broker = Mutated
