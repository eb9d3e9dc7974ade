"""After a restart the broker goes on with the delayed messages that are stored from then on, and not with the others.

Shows when a broker restarts while a message with a delay level waits, and the queue it was meant for is read later.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.storing import Storing
from reference_impl.core.io import Effect
from specs.vocabulary import SCHEDULE_TOPIC

NAME = "delayed-forgotten-at-a-restart"
BUG = "hand-made: where a level goes on is taken from its queue's end, not from what was delivered"
SOURCE = "ScheduleMessageService.correctDelayOffset, which begins at the queue's minimum"
KILLED_BY = "SND-11"


class ForgetfulStoring(Storing):
    def start(self, now_ms: int, out: list[Effect]) -> None:
        store = self._parts.store
        for level in range(1, len(self._parts.config.delay_ms) + 1):
            store.delayed_done[level] = store.queue(SCHEDULE_TOPIC, level - 1).max_offset
        super().start(now_ms, out)


class Mutated(Broker):
    storing_class = ForgetfulStoring


broker = Mutated
