"""A client that was refused a newly assigned lane a few times does not ask for it again.

Shows when an owner dies: its successor is refused until the lease has run out, and never takes the lane over.
"""

from collections import Counter
from collections.abc import Sequence

from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.consumer.leases import Granted
from reference_impl.core.consumer.rebalance import Candidate
from specs.vocabulary import Queue

NAME = "refused-lane-given-up"
BUG = "B-09, in part: a lane whose lock was not had at once is never consumed"
SOURCE = "rocketmq-client-cpp #345 (there a granted lock was reported as refused)"
KILLED_BY = "LSE-5"

TRIES = 3


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.refusals: Counter[Queue] = Counter()

    def _candidates_answered(
        self, candidates: Sequence[Candidate], now_ms: int, granted: Granted
    ) -> None:
        if granted is not None:
            self.refusals.update(
                candidate.queue for candidate in candidates if candidate.queue not in granted
            )
        super()._candidates_answered(candidates, now_ms, granted)

    def _add_lanes(self, now_ms: int, share: Sequence[Queue]) -> None:
        super()._add_lanes(now_ms, [queue for queue in share if self.refusals[queue] < TRIES])


consumer = Mutated
