"""After an answer without messages the client waits for three seconds before it pulls the lane again.

Shows when a pull's time is up without a message.
"""

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import LeasedPulling
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command

NAME = "pulled-later-when-nothing-came"
BUG = "hand-made: nothing found is treated as a failure is, and asked again after a while"
SOURCE = "DefaultMQPushConsumerImpl.pullMessage, whose branch NO_NEW_MSG pulls at once"
KILLED_BY = "LIV-5"


class MutatedPulling(LeasedPulling):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.found_nothing = False

    def pulled(
        self,
        pq: ProcessQueue,
        op: int,
        commit_op: int | None,
        now_ms: int,
        answer: Command | None,
        reason: str,
    ) -> None:
        self.found_nothing = answer is not None and answer.code == ResponseCode.PULL_NOT_FOUND
        super().pulled(pq, op, commit_op, now_ms, answer, reason)
        self.found_nothing = False

    def pull(self, now_ms: int, pq: ProcessQueue) -> None:
        if self.found_nothing:
            self.pull_later(pq, self.config.pull_retry_ms)
        else:
            super().pull(now_ms, pq)


class Mutated(OrderlyConsumer):
    pulling_class = MutatedPulling


consumer = Mutated
