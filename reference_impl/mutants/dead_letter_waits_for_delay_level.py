"""A dead letter keeps the delay level of the retry that it replaces, and becomes visible after that delay only.

Shows at the first message that exhausts its retries (with the default table: 2 minutes late after 3 retries).
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft

NAME = "dead-letter-waits-for-delay-level"
BUG = "B-29: an exhausted message reaches the dead letters only after its delay level"
SOURCE = "apache/rocketmq issue 2724, mended by 8434658798; the 4.9 line has it to the end"
KILLED_BY = "DLQ-7"


class LateDiversion(Diversion):
    def drop_delay(self, draft: Draft) -> None:
        pass


class Mutated(Broker):
    diversion_class = LateDiversion


broker = Mutated
