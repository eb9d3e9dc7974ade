"""A group that starts from a time does so at each lane that it adds, whatever offset is stored.

Shows where such a group takes a lane over, or comes back, after it has committed.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.candidate import Candidate
from reference_impl.core.consumer.rebalance import Rebalance

NAME = "time-wins-over-what-is-stored"
BUG = "hand-made: the rule for a start from a time is looked at before the stored offset"
SOURCE = "RebalancePushImpl.computePullFromWhereWithException, CONSUME_FROM_TIMESTAMP: the stored offset comes first"
KILLED_BY = "CMT-8"


class MutatedRebalance(Rebalance):
    def stored_known(self, candidate: Candidate, now_ms: int, stored: int) -> None:
        by_time = (
            self.config.consume_from == "timestamp"
            and candidate.queue.topic != self.consumer.retry_topic
        )
        if by_time and stored >= 0:
            self.compute_start(now_ms, candidate)
        else:
            super().stored_known(candidate, now_ms, stored)


class Mutated(OrderlyConsumer):
    rebalance_class = MutatedRebalance


consumer = Mutated
