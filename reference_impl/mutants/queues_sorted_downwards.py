"""Some clients of a group sort the queues downwards before they share them out, and the others upwards.

Shows when one of each kind is in a group: they take some queues twice and leave others out, and only the lease keeps
a queue from having two readers. Which clients are of the other kind is decided by their ids.
"""

from collections.abc import Sequence

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.rebalance import Rebalance
from specs.vocabulary import Queue

NAME = "queues-sorted-downwards"
BUG = "B-22: clients in one language sorted the queues downwards, those in another one upwards"
SOURCE = "apache/rocketmq-client-go issue 420, mended by f2db09f"
KILLED_BY = "ASG-4"


class MutatedRebalance(Rebalance):
    def in_order(self, queues: Sequence[Queue]) -> Sequence[Queue]:
        return sorted(queues, reverse=sum(self.config.client_id.encode()) % 2 == 0)


class Mutated(OrderlyConsumer):
    rebalance_class = MutatedRebalance


consumer = Mutated
