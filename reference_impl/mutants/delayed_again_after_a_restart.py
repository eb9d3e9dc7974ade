"""After a restart the broker delivers every delayed message again: how far a level had come was kept in memory only.

Shows when a broker restarts after a message with a delay level was delivered.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.storing import Storing
from reference_impl.core.io import Effect

NAME = "delayed-again-after-a-restart"
BUG = "the offsets of the levels are written every 10 s, so what came after that is delivered again; here nothing is"
SOURCE = "ScheduleMessageService.start: delayOffset.json, flushDelayOffsetInterval"
KILLED_BY = "SND-2"


class RepeatingStoring(Storing):
    def start(self, now_ms: int, out: list[Effect]) -> None:
        self._parts.store.delayed_done.clear()
        super().start(now_ms, out)


class Mutated(Broker):
    storing_class = RepeatingStoring


broker = Mutated
