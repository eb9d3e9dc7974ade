"""A message whose dead letter was refused, or not answered, is acknowledged all the same.

Shows when the send of an exhausted message fails: the broker is gone, or the answer is lost.
"""

from collections.abc import Callable, Sequence

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "dead-letter-failure-ignored"
BUG = "B-41: the failure of a send-back is ignored, and the message is lost"
SOURCE = "rocketmq-client-cpp #208 (255de3b, 2020); rocketmq-client-go #860 (4efd770, 2022)"
KILLED_BY = "DLQ-6"
CONFIG = {"max_reconsume_times": 1}


class MutatedDeadLetters(DeadLetters):
    def give_up(
        self,
        now_ms: int,
        pq: ProcessQueue,
        messages: Sequence[StoredMessage],
        then: Callable[[int, frozenset[int]], None],
    ) -> None:
        every = frozenset(message.queue_offset for message in messages)
        super().give_up(now_ms, pq, messages, lambda now_ms, done: then(now_ms, every))


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
