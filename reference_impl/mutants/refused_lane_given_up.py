"""A client that was refused a newly assigned lane a few times does not ask for it again.

Shows when an owner dies: its successor is refused until the lease has run out, and never takes the lane over.
"""

from collections import Counter
from collections.abc import Sequence

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.candidate import Candidate
from reference_impl.core.consumer.leases import Granted
from reference_impl.core.consumer.rebalance import Rebalance
from specs.vocabulary import Queue

NAME = "refused-lane-given-up"
BUG = "B-09, in part: a lane whose lock was not had at once is never consumed"
SOURCE = "rocketmq-client-cpp #345 (there a granted lock was reported as refused)"
KILLED_BY = "LSE-5"

TRIES = 3


class MutatedRebalance(Rebalance):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.refusals: Counter[Queue] = Counter()

    def candidates_answered(
        self, candidates: Sequence[Candidate], now_ms: int, granted: Granted
    ) -> None:
        if granted is not None:
            self.refusals.update(
                candidate.queue for candidate in candidates if candidate.queue not in granted
            )
        super().candidates_answered(candidates, now_ms, granted)

    def add_lanes(self, now_ms: int, share: Sequence[Queue]) -> None:
        super().add_lanes(now_ms, [queue for queue in share if self.refusals[queue] < TRIES])


class Mutated(OrderlyConsumer):
    rebalance_class = MutatedRebalance


consumer = Mutated
