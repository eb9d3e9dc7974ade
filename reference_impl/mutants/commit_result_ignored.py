"""In auto mode a COMMIT or a ROLLBACK moves no offset.

Shows when a listener answers so and nothing else of the lane is finished for a persist interval.
"""

from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import CommitMode, Outcome

NAME = "commit-result-ignored"
BUG = "B-34: COMMIT and ROLLBACK in auto mode do not commit, the offset stalls"
SOURCE = "rocketmq-client-go, push_consumer.go (a switch that does not fall through)"
KILLED_BY = "CMT-2"


class Mutated(OrderlyConsumer):
    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.ignores = False

    def _finish(
        self,
        now_ms: int,
        pq: ProcessQueue,
        batch: list[StoredMessage],
        outcome: Outcome,
        mode: CommitMode,
        pause_ms: int,
        given_up: bool,
    ) -> None:
        self.ignores = mode is CommitMode.AUTO and outcome in (Outcome.COMMIT, Outcome.ROLLBACK)
        super()._finish(now_ms, pq, batch, outcome, mode, pause_ms, given_up)

    def commit_batch(self, pq: ProcessQueue) -> None:
        if not self.ignores:
            super().commit_batch(pq)
        self.ignores = False


consumer = Mutated
