"""A group that starts from a time does so at each lane that it adds, whatever offset is stored.

Shows where such a group takes a lane over, or comes back, after it has committed.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.rebalance import Candidate

NAME = "time-wins-over-what-is-stored"
BUG = "hand-made: the rule for a start from a time is looked at before the stored offset"
SOURCE = "RebalancePushImpl.computePullFromWhereWithException, CONSUME_FROM_TIMESTAMP: the stored offset comes first"
KILLED_BY = "CMT-8"


class Mutated(OrderlyConsumer):
    def _stored_known(self, candidate: Candidate, now_ms: int, stored: int) -> None:
        by_time = (
            self.config.consume_from == "timestamp" and candidate.queue.topic != self.retry_topic
        )
        if by_time and stored >= 0:
            self._compute_start(now_ms, candidate)
        else:
            super()._stored_known(candidate, now_ms, stored)


consumer = Mutated
