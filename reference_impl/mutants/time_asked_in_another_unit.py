"""A group that starts from a time asks for it in microseconds, so that it is later than every message.

Shows where such a group finds messages in a lane of which no offset is stored.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.candidate import Candidate
from reference_impl.core.consumer.rebalance import Rebalance
from reference_impl.core.consumer.start_offset import START, Where

NAME = "time-asked-in-another-unit"
BUG = "hand-made: two clocks of a client count in other units, and the wrong one is asked for the start"
SOURCE = "RebalancePushImpl.computePullFromWhereWithException, CONSUME_FROM_TIMESTAMP: the time is in milliseconds"
KILLED_BY = "CMT-8"
CONFIG = {"consume_from": "timestamp", "keep_ms": 5_000}
"""A young topic starts at 0, whatever the rule; one whose first message is gone is not young."""


class MutatedRebalance(Rebalance):
    def compute_start(self, now_ms: int, candidate: Candidate) -> None:
        by_time = (
            START[self.config.consume_from, candidate.queue.topic == self.consumer.retry_topic]
            is Where.TIME
        )
        super().compute_start(now_ms * 1_000 if by_time else now_ms, candidate)


class Mutated(OrderlyConsumer):
    rebalance_class = MutatedRebalance


consumer = Mutated
