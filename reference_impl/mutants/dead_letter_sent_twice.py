"""A given-up message is sent to the dead letters, acknowledged, and sent once more.

Shows whenever a message is given up; needs a limit.
"""

from collections.abc import Callable

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "dead-letter-sent-twice"
BUG = "B-77 b, made certain: an exhausted message is sent to the dead letters repeatedly"
SOURCE = "ConsumeMessageOrderlyService.checkReconsumeTimes"
KILLED_BY = "DLQ-2"
CONFIG = {"max_reconsume_times": 1}


class MutatedDeadLetters(DeadLetters):
    def send_back(
        self,
        now_ms: int,
        pq: ProcessQueue,
        message: StoredMessage,
        then: Callable[[int, bool], None],
        attempt: int = 1,
    ) -> None:
        def again(now_ms: int, acknowledged: bool) -> None:
            super(MutatedDeadLetters, self).send_back(now_ms, pq, message, then)

        super().send_back(now_ms, pq, message, again if attempt == 1 else then, attempt)


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
