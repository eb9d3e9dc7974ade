"""A listener that throws has its batch acknowledged.

Shows whenever a listener throws and another message follows, or a commit goes out.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import CommitMode, Outcome

NAME = "throw-taken-for-success"
BUG = "B-37: the result's zero value is success, so an error is committed"
SOURCE = "rocketmq-client-go, push_consumer.go"
KILLED_BY = "RTY-7"


class Mutated(OrderlyConsumer):
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
        if outcome is Outcome.THREW:
            outcome, given_up = Outcome.SUCCESS, False
        super()._finish(now_ms, pq, batch, outcome, mode, pause_ms, given_up)


consumer = Mutated
