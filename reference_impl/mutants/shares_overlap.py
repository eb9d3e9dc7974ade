"""A block begins where it would if all blocks were of the smaller size, so that the larger ones overlap the next.

Shows when the queues don't divide evenly by the members. Two members then want one queue; its lease lets one of them
have it, and the last queues are left to nobody.
"""

from collections.abc import Sequence
from types import MappingProxyType

from reference_impl.core.allocation import STRATEGIES
from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.rebalance import Rebalance
from specs.vocabulary import Queue

NAME = "shares-overlap"
BUG = "hand-made from AllocateMessageQueueAveragely: the remainder is left out of the start of a block"
SOURCE = "AllocateMessageQueueAveragely.allocate, `startIndex`"
KILLED_BY = "ASG-1"


def overlapping(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
    if client_id not in members:
        return []
    place = members.index(client_id)
    size, rest = divmod(len(queues), len(members))
    start = place * size
    return list(queues[start : start + size + (1 if place < rest else 0)])


class MutatedRebalance(Rebalance):
    strategies = MappingProxyType({**STRATEGIES, "AVG": overlapping})


class Mutated(OrderlyConsumer):
    rebalance_class = MutatedRebalance


consumer = Mutated
