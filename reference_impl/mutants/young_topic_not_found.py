"""A look-up of an offset that nobody stored is answered "nothing stored", though the topic is young.

Shows where a group starts from the last offset: it skips what was sent before it came.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.consumer_offsets import ConsumerOffsets
from reference_impl.protocol.headers import QueryConsumerOffsetHeader

NAME = "young-topic-not-found"
BUG = "hand-made from the start matrix: the broker forgets that a young topic starts at 0"
SOURCE = "ConsumerManageProcessor.queryConsumerOffset; what users expect of it in RocketMQ issues 1135, 4909 and 9083"
KILLED_BY = "CMT-8"


class PlainTruth(ConsumerOffsets):
    def when_missing(self, header: QueryConsumerOffsetHeader) -> int | None:
        return None


class Mutated(Broker):
    consumer_offsets_class = PlainTruth


broker = Mutated
