"""A consumer takes an error for the answer "nothing is stored", and starts where a new group would.

Shows when a lane changes hands while the broker answers the question for its stored offset with an error.
"""

from reference_impl.core.consumer.offsets import BrokerOffsets
from reference_impl.core.consumer.orderly import OrderlyConsumer
from reference_impl.core.consumer.start_offset import FAILED, NOT_FOUND
from reference_impl.protocol.command import Command

NAME = "offset-error-is-nothing-stored"
BUG = "B-54: an error of the offset query is taken for a missing offset, by the consumer itself"
SOURCE = "apache/rocketmq issues 2708 and 1825, mended by 5b945a9027"
KILLED_BY = "CMT-8"


class Trusting(BrokerOffsets):
    def read_stored(self, answer: Command | None) -> int:
        stored = super().read_stored(answer)
        return NOT_FOUND if stored == FAILED and answer is not None else stored


class Mutated(OrderlyConsumer):
    offsets_class = Trusting


consumer = Mutated
