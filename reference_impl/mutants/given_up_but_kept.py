"""A message whose dead letter was acknowledged stays in the lane, and is delivered and given up again.

Shows at the first message that exhausts its retries; needs a limit.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import CommitMode, Outcome

NAME = "given-up-but-kept"
BUG = "B-48, second part: after the message was handed on, the retry that was scheduled goes on as well"
SOURCE = "rocketmq-clients #1265 (bf4462c2, 2026): a missing return"
KILLED_BY = "DLQ-3"
CONFIG = {"max_reconsume_times": 1}


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
        super()._finish(now_ms, pq, batch, outcome, mode, pause_ms, given_up=False)


consumer = Mutated
