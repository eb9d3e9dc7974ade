"""A message whose dead letter was acknowledged stays in the lane, and is delivered and given up again.

Shows at the first message that exhausts its retries; needs a limit.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import Ended, OrderlyLoop

NAME = "given-up-but-kept"
BUG = "B-48, second part: after the message was handed on, the retry that was scheduled goes on as well"
SOURCE = "rocketmq-clients #1265 (bf4462c2, 2026): a missing return"
KILLED_BY = "DLQ-3"
CONFIG = {"max_reconsume_times": 1}


class MutatedLoop(OrderlyLoop):
    def finish(self, now_ms: int, ended: Ended) -> None:
        super().finish(now_ms, ended._replace(given_up=False))


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
