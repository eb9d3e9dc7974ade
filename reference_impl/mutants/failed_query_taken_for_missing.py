"""A look-up of the stored offset that fails is taken for "nothing stored".

Shows when the look-up before a lane is added stays unanswered: the lane starts where the group's rule says.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.offsets import BrokerOffsets
from reference_impl.core.consumer.start_offset import FAILED, NOT_FOUND
from reference_impl.protocol.command import Command

NAME = "failed-query-taken-for-missing"
BUG = "B-54: the client's -2 (an error) is handled like its -1 (nothing stored)"
SOURCE = "RocketMQ issues 2705, 2944 and 1825, mended by 5b945a9027 (2021)"
KILLED_BY = "CMT-8"


class MutatedOffsets(BrokerOffsets):
    def read_stored(self, answer: Command | None) -> int:
        stored = super().read_stored(answer)
        return NOT_FOUND if stored == FAILED else stored


class Mutated(OrderlyConsumer):
    offsets_class = MutatedOffsets


consumer = Mutated
