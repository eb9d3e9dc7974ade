"""What is due on a level is moved all at once, the newest first: the list of a tick is gone through from its end.

Shows when two messages of one level for one queue wait at a time, and the queue is read later.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.storing import DELAY_TIMER, Storing
from reference_impl.core.io import Effect, SetTimer
from specs.vocabulary import SCHEDULE_TOPIC

NAME = "delayed-newest-first"
BUG = "hand-made: a timing wheel whose slots are linked lists, read from the last entry"
SOURCE = (
    "ScheduleMessageService.DeliverDelayedMessageTimerTask, which goes through its queue in order"
)
KILLED_BY = "SND-11"
TICK_MS = 100


class StackedStoring(Storing):
    def deliver_due(self, now_ms: int, level: int, out: list[Effect]) -> None:
        """A tick later than what is due first, so that a slot has filled by then."""
        store = self._parts.store
        if level > len(self._parts.config.delay_ms):
            return
        queue, place = store.queue(SCHEDULE_TOPIC, level - 1), store.delayed_done.get(level, 0)
        due = []
        while (waiting := queue.get(place)) is not None:
            left_ms = waiting.store_ms + self.wait_ms(level) - now_ms
            if left_ms > 0:
                break
            due.append(waiting)
            place += 1
        first = due[0] if due else waiting
        if first is None:
            return
        left_ms = first.store_ms + self.wait_ms(level) + TICK_MS - now_ms
        if left_ms > 0:
            out.append(SetTimer((DELAY_TIMER, level), left_ms))
            return
        for message in reversed(due):
            self.append(now_ms, self.released(message), out)
        store.delayed_done[level] = place
        if queue.get(place) is not None:
            out.append(SetTimer((DELAY_TIMER, level), TICK_MS))


class Mutated(Broker):
    storing_class = StackedStoring


broker = Mutated
