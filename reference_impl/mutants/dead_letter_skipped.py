"""A message whose retries are exhausted is acknowledged without being sent to the dead letters.

Shows whenever a message is given up; needs a limit.
"""

from collections.abc import Callable, Sequence

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "dead-letter-skipped"
BUG = "B-48: acknowledged instead of forwarded to the dead letters"
SOURCE = "rocketmq-clients #1266 (323fe200, 2026, Go)"
KILLED_BY = "DLQ-1"
CONFIG = {"max_reconsume_times": 1}


class Mutated(OrderlyConsumer):
    def give_up(
        self,
        now_ms: int,
        pq: ProcessQueue,
        messages: Sequence[StoredMessage],
        then: Callable[[int, frozenset[int]], None],
    ) -> None:
        then(now_ms, frozenset(message.queue_offset for message in messages))


consumer = Mutated
