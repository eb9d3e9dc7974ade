"""An exhausted message goes to the retry topic, comes back after a delay, and never becomes a dead letter.

The broker compares as if the client had not counted the last try yet. Shows at the first message that exhausts
its retries: the consumer goes on and looks healthy, only the dead letters tell.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion

NAME = "exhausted-circles-through-retry-topic"
BUG = "B-28: an exhausted ordered message circles through the retry topic for ever"
SOURCE = "apache/rocketmq issues 6163 and 5717, mended by 7cfffe7f48; measured on 5.1.0"
KILLED_BY = "DLQ-1"


class OffByOneDiversion(Diversion):
    def is_dead(self, now_ms: int, group: str, reconsume_times: int, limit: int) -> bool:
        return reconsume_times > limit + 1


class Mutated(Broker):
    diversion_class = OffByOneDiversion


broker = Mutated
