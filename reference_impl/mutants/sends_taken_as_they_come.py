"""A log takes every send as it comes, also one that it has taken before.

Shows when an answer is lost while further sends are under way: the second copy lies behind them.
"""

from typing import Any

from reference_impl.core.sequenced_log import SequencedLog

NAME = "sends-taken-as-they-come"
BUG = "K-4: a producer that is not idempotent has several sends in flight, and sends again what had no answer"
SOURCE = (
    "Kafka's producer with several requests in flight, retries and without idempotence (KAFKA-5494)"
)
KILLED_BY = "ORD-15"


class Mutated(SequencedLog):
    def take(self, producer: str, number: int, message: Any) -> int | None:
        return self.store(message)


log = Mutated
