"""A given-up message becomes a dead letter of the client's inner producer group.

Shows at the first message that exhausts its retries: nobody looks for it there.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft

NAME = "dead-letter-of-another-group"
BUG = "B-45: a dead letter lands elsewhere"
SOURCE = "RocketMQ issues 10405, 10408 and 10624 (2026, open): there on another broker"
KILLED_BY = "DLQ-8"
INNER_PRODUCER = "CLIENT_INNER_PRODUCER"


class StrayDiversion(Diversion):
    def bury(self, group: str, draft: Draft) -> None:
        super().bury(INNER_PRODUCER, draft)


class Mutated(Broker):
    diversion_class = StrayDiversion


broker = Mutated
