"""In auto mode a COMMIT or a ROLLBACK moves no offset.

Shows when a listener answers so and nothing else of the lane is finished for a persist interval.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import Ended, OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from specs.vocabulary import CommitMode, Outcome

NAME = "commit-result-ignored"
BUG = "B-34: COMMIT and ROLLBACK in auto mode do not commit, the offset stalls"
SOURCE = "rocketmq-client-go, push_consumer.go (a switch that does not fall through)"
KILLED_BY = "CMT-2"


class MutatedLoop(OrderlyLoop):
    def __init__(self, consumer: OrderlyConsumer) -> None:
        super().__init__(consumer)
        self.ignores = False

    def finish(self, now_ms: int, ended: Ended) -> None:
        self.ignores = ended.mode is CommitMode.AUTO and ended.outcome in (
            Outcome.COMMIT,
            Outcome.ROLLBACK,
        )
        super().finish(now_ms, ended)

    def commit_batch(self, pq: ProcessQueue) -> None:
        if not self.ignores:
            super().commit_batch(pq)
        self.ignores = False


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
