"""The places on the ring are the first four bytes of the hash in the other order.

No history shows it: the shares of such members fit together, and only a member with the right ring among them, or
the table, tells that they are other ones.
"""

from bisect import bisect_left
from collections.abc import Sequence
from hashlib import md5
from types import MappingProxyType

from reference_impl.core.allocation import STRATEGIES, VIRTUAL_NODES
from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.rebalance import Rebalance
from specs.vocabulary import Queue

NAME = "ring-hashed-otherwise"
BUG = (
    "hand-made from ConsistentHashRouter: the bytes of the hash are read from the last to the first"
)
SOURCE = "ConsistentHashRouter.MD5Hash"
KILLED_BY = "ASG-3"
ORACLE = "vectors"


def _hash32(text: str) -> int:
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "little")


def other_ring(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
    ring = {
        _hash32(f"{member}-{number}"): member
        for member in members
        for number in range(VIRTUAL_NODES)
    }
    places = sorted(ring)
    share = []
    for queue in queues:
        text = f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId={queue.queue_id}]"
        if ring[places[bisect_left(places, _hash32(text)) % len(places)]] == client_id:
            share.append(queue)
    return share


class MutatedRebalance(Rebalance):
    strategies = MappingProxyType({**STRATEGIES, "CONSISTENT_HASH": other_ring})


class Mutated(OrderlyConsumer):
    rebalance_class = MutatedRebalance


consumer = Mutated
