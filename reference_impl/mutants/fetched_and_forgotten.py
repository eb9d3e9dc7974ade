"""Of messages that are fetched together the last one is never handed on, and the position goes past it.

Shows when several messages wait for a pull: the listener is given what lies before and what lies behind.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import LeasedPulling
from reference_impl.protocol.message import StoredMessage

NAME = "fetched-and-forgotten"
BUG = "a consumer skips offsets with no rebalance, and nobody notices"
SOURCE = "librdkafka issue 1720; mimir pull request 9921 and snowflake-kafka-connector 1497 (2026), which count gaps"
KILLED_BY = "ORD-17"


class MutatedPulling(LeasedPulling):
    def wanted(self, pq: ProcessQueue, messages: list[StoredMessage]) -> list[StoredMessage]:
        fetched = super().wanted(pq, messages)
        return fetched[:-1] if len(fetched) > 1 else fetched


class Mutated(OrderlyConsumer):
    pulling_class = MutatedPulling


consumer = Mutated
