"""A dead letter keeps neither the id nor the topic of the message that it is a copy of, nor its key.

Shows at the first message that exhausts its retries.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft
from reference_impl.protocol.message import (
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_SHARDING_KEY,
)

NAME = "dead-letter-loses-its-origin"
BUG = "B-43: the properties of the copy are overwritten, and its origin's id is lost"
SOURCE = "apache/rocketmq issue 4050 (d1b6240c84, 2022)"
KILLED_BY = "DLQ-5"
CONFIG = {"max_reconsume_times": 1}


class ForgettingDiversion(Diversion):
    def bury(self, group: str, draft: Draft) -> None:
        for name in (PROPERTY_ORIGIN_MESSAGE_ID, PROPERTY_RETRY_TOPIC, PROPERTY_SHARDING_KEY):
            draft.properties.pop(name, None)
        super().bury(group, draft)


class Mutated(Broker):
    diversion_class = ForgettingDiversion


broker = Mutated
