"""Every second message whose retries are exhausted is acknowledged without being sent to the dead letters.

Shows as soon as two messages of one client are given up; needs a limit.
"""

from collections.abc import Callable, Sequence

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "dead-letter-skipped"
BUG = "B-48: acknowledged instead of forwarded to the dead letters"
SOURCE = "rocketmq-clients #1266 (323fe200, 2026, Go)"
KILLED_BY = "DLQ-1"
CONFIG = {"max_reconsume_times": 1}


class MutatedDeadLetters(DeadLetters):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.given_up = 0

    def give_up(
        self,
        now_ms: int,
        pq: ProcessQueue,
        messages: Sequence[StoredMessage],
        then: Callable[[int, frozenset[int]], None],
    ) -> None:
        self.given_up += 1
        if self.given_up % 2:
            super().give_up(now_ms, pq, messages, then)
        else:
            then(now_ms, frozenset(message.queue_offset for message in messages))


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
