"""After a restart no timer is set for what waits already; only the next delayed message of the level sets one.

Shows when a broker restarts while a message with a delay level waits, and no other of its level follows.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.storing import DELAY_TIMER, Storing
from reference_impl.core.io import Effect, SetTimer
from reference_impl.protocol.message import StoredMessage

NAME = "delayed-waits-for-the-next"
BUG = "hand-made: the timer of a level is set when a message is stored, and by nothing else"
SOURCE = "ScheduleMessageService.start, which schedules every level"
KILLED_BY = "SND-11"


class DozingStoring(Storing):
    def start(self, now_ms: int, out: list[Effect]) -> None:
        """Nothing was stored yet."""

    def store(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        level = self.delay_level(draft)
        stored = super().store(now_ms, draft, out)
        if level > 0:
            out.append(SetTimer((DELAY_TIMER, level), self.wait_ms(level)))
        return stored


class Mutated(Broker):
    storing_class = DozingStoring


broker = Mutated
