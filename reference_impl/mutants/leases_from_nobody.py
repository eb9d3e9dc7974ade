"""A client takes the lanes of its share to be its own: it asks nobody for a lease.

Shows when a client joins or leaves while a listener takes longer than the rebalance: both work on the lane, and as no
lease is asked for, only the calls themselves tell.
"""

from collections.abc import Callable, Sequence

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import Granted, Leases
from specs.vocabulary import Queue

NAME = "leases-from-nobody"
BUG = "the next owner of a lane works on it while work of the one before still runs there"
SOURCE = (
    "reactor-kafka issue 345, MassTransit issue 3276 and atleon issue 439 (2025), there with Kafka"
)
KILLED_BY = "ORD-16"


class MutatedLeases(Leases):
    def ask_lease(
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
