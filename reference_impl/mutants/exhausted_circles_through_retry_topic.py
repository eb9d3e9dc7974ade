"""An exhausted message goes to the retry topic, comes back after a delay, fails again, and so on for ever.

The broker wants a counter beyond the limit, and counts the last try only when the next one comes back. Shows at
the first message that exhausts its retries: the consumer goes on and looks healthy, only the missing dead letter
tells.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.log import Draft

NAME = "exhausted-circles-through-retry-topic"
BUG = "B-28: an exhausted ordered message circles through the retry topic for ever"
SOURCE = "apache/rocketmq issues 6163 and 5717, mended by 7cfffe7f48; measured on 5.1.0"
KILLED_BY = "DLQ-1"


class CirclingDiversion(Diversion):
    def divert(self, now_ms: int, draft: Draft, limit: int | None, version: int) -> None:
        draft.reconsume_times = max(0, draft.reconsume_times - 1)  # as clients up to 5.1.0 sent it
        super().divert(now_ms, draft, limit, version)

    def is_dead(self, now_ms: int, group: str, reconsume_times: int, limit: int) -> bool:
        return reconsume_times > limit


class Mutated(Broker):
    diversion_class = CirclingDiversion


broker = Mutated
