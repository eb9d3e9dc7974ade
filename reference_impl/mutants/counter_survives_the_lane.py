"""The retry counters are kept by queue and offset for as long as the client lives, not for one incarnation.

Shows when a client loses a lane while a message of it is suspended, and is given it again.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import Queue

NAME = "counter-survives-the-lane"
BUG = "hand-made from ProcessQueue: the counters belong to the client instead of the incarnation"
SOURCE = (
    "ConsumeMessageOrderlyService.checkReconsumeTimes, RebalanceImpl.removeUnnecessaryMessageQueue"
)
KILLED_BY = "RTY-11"


class MutatedLoop(OrderlyLoop):
    def __init__(self, consumer: OrderlyConsumer) -> None:
        super().__init__(consumer)
        self.counted: dict[Queue, dict[int, int]] = {}

    def count_retry(self, pq: ProcessQueue, message: StoredMessage) -> None:
        super().count_retry(pq, message)
        self.counted.setdefault(pq.queue, {})[message.queue_offset] = pq.extra_times[
            message.queue_offset
        ]

    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        known = self.counted.get(pq.queue, {})
        for message in messages:
            if message.queue_offset in known:
                pq.extra_times.setdefault(message.queue_offset, known[message.queue_offset])
        super().keep(now_ms, pq, messages)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
