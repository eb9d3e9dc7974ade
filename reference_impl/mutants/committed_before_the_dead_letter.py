"""The offset passes an exhausted message before its dead letter has arrived.

Shows when that send fails, and a commit goes out before the next try.
"""

from collections.abc import Callable, Sequence

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "committed-before-the-dead-letter"
BUG = "B-49: a message is erased before the failure to send it on is handled"
SOURCE = "rocketmq-clients 04553f8d (2021)"
KILLED_BY = "CMT-1"
CONFIG = {"max_reconsume_times": 1}


class MutatedDeadLetters(DeadLetters):
    def give_up(
        self,
        now_ms: int,
        pq: ProcessQueue,
        messages: Sequence[StoredMessage],
        then: Callable[[int, frozenset[int]], None],
    ) -> None:
        self.consumer.offsets.store_offset(pq, messages[-1].queue_offset + 1)
        super().give_up(now_ms, pq, messages, then)


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
