"""A newly assigned lane is consumed before its lease was asked for.

Shows at every assignment with messages waiting: the first renewal comes up to an interval later.
"""

from collections.abc import Callable, Sequence

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import Granted, Leases
from specs.vocabulary import Queue

NAME = "lane-added-without-lease"
BUG = "B-11: the rebalance adds queues without asking the broker for them"
SOURCE = "RebalanceImpl before commit 36ce0194f9 (2016)"
KILLED_BY = "LSE-11"


class MutatedLeases(Leases):
    def acquire(
        self,
        now_ms: int,
        broker: str,
        queues: Sequence[Queue],
        then: Callable[[int, Granted], None],
    ) -> None:
        then(now_ms, frozenset(queues))


class Mutated(OrderlyConsumer):
    leases_class = MutatedLeases


consumer = Mutated
