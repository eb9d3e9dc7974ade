"""After a restart the broker releases every delayed message at once, as if its time had passed.

Shows when a broker restarts while a message with a delay level waits.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.storing import Storing
from reference_impl.core.io import Effect

NAME = "restart-releases-what-waits"
BUG = "hand-made: what waits is released at the start, not at its time"
SOURCE = "ScheduleMessageService.start"
KILLED_BY = "SND-7"


class ReleasingStoring(Storing):
    def start(self, now_ms: int, out: list[Effect]) -> None:
        super().start(now_ms + max(self._parts.config.delay_ms, default=0), out)


class Mutated(Broker):
    storing_class = ReleasingStoring


broker = Mutated
