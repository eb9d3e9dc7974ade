"""A newly assigned lane is consumed before its lease was asked for.

Shows at every assignment with messages waiting: the first renewal comes up to an interval later.
"""

from collections.abc import Sequence

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.rebalance import Candidate

NAME = "lane-added-without-lease"
BUG = "B-11: the rebalance adds queues without asking the broker for them"
SOURCE = "RebalanceImpl before commit 36ce0194f9 (2016)"
KILLED_BY = "LSE-11"


class Mutated(OrderlyConsumer):
    def lock_before_add(self, now_ms: int, broker: str, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            candidate.locked_ms = now_ms
            self.find_start(now_ms, candidate)


consumer = Mutated
