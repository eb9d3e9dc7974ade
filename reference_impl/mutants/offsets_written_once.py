"""The broker writes its offsets to disk once, and never again.

Shows when a broker that has run for a while crashes and comes back.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.consumer_offsets import ConsumerOffsets
from reference_impl.core.io import Effect

NAME = "offsets-written-once"
BUG = "B-66, broker form: a scheduled task dies, and nobody starts it again"
SOURCE = "hand-made, after RocketMQ commit 0e2d057457 (there the rebalance stopped for ever)"
KILLED_BY = "CMT-7"


class OneWrite(ConsumerOffsets):
    def persist_in_turn(self, out: list[Effect]) -> None:
        self.persist(out)


class Mutated(Broker):
    consumer_offsets_class = OneWrite


broker = Mutated
