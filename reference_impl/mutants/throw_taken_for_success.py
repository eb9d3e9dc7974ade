"""A listener that throws has its batch acknowledged.

Shows whenever a listener throws and another message follows, or a commit goes out.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import Ended, OrderlyLoop
from specs.vocabulary import Outcome

NAME = "throw-taken-for-success"
BUG = "B-37: the result's zero value is success, so an error is committed"
SOURCE = "rocketmq-client-go, push_consumer.go"
KILLED_BY = "RTY-7"


class MutatedLoop(OrderlyLoop):
    def finish(self, now_ms: int, ended: Ended) -> None:
        if ended.outcome is Outcome.THREW:
            ended = ended._replace(outcome=Outcome.SUCCESS, given_up=False)
        super().finish(now_ms, ended)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
