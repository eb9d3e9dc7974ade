"""What is left when the queues are divided by the members goes to nobody.

Shows when the queues don't divide evenly by the members: nobody reads the last ones.
"""

from collections.abc import Sequence
from types import MappingProxyType

from reference_impl.core.allocation import STRATEGIES
from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.rebalance import Rebalance
from specs.vocabulary import Queue

NAME = "remainder-left-out"
BUG = "hand-made from AllocateMessageQueueAveragely: every block has the smaller size"
SOURCE = "AllocateMessageQueueAveragely.allocate, `averageSize`"
KILLED_BY = "ASG-2"


def without_remainder(
    client_id: str, queues: Sequence[Queue], members: Sequence[str]
) -> list[Queue]:
    if client_id not in members:
        return []
    place, size = members.index(client_id), len(queues) // len(members)
    return list(queues[place * size : (place + 1) * size])


class MutatedRebalance(Rebalance):
    strategies = MappingProxyType({**STRATEGIES, "AVG": without_remainder})


class Mutated(OrderlyConsumer):
    rebalance_class = MutatedRebalance


consumer = Mutated
