"""Two chains of pulls work on one lane, so finished messages come in a second time.

Shows when messages keep coming: both parked pulls wake with the same message, and the second arrives when the
first is finished; its commit then goes back.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.rebalance import Candidate
from reference_impl.core.consumer.start_offset import NOT_FOUND

NAME = "two-pullers"
BUG = "B-26: a second pull request for a queue that has one"
SOURCE = "RocketMQ issue 2449; rocketmq-client-cpp 207eb96 (2024); rocketmq-client-go #313 (fdbb58a)"
KILLED_BY = "CMT-4"


class Mutated(OrderlyConsumer):
    def add(self, now_ms: int, candidate: Candidate, start: int, stored: int = NOT_FOUND) -> None:
        super().add(now_ms, candidate, start, stored)
        pq = self.lanes.get(candidate.queue)
        if pq is not None:
            self.pull(now_ms, pq)


consumer = Mutated
