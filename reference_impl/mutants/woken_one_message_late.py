"""A waiting pull is answered when the queue has grown beyond the offset behind the one that it asks for.

Shows when a message comes to a queue at whose end somebody waits, and no other follows.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.pull import Pulling
from reference_impl.core.io import Effect

NAME = "woken-one-message-late"
BUG = "hand-made: the newest offset is compared, and not the one behind it, which is what a pull asks for next"
SOURCE = "PullRequestHoldService.notifyMessageArriving, newestOffset > pullFromThisOffset"
KILLED_BY = "LIV-4"


class Late(Pulling):
    def wake(self, now_ms: int, queue: tuple[str, int], out: list[Effect]) -> None:
        waiting = self._holds.get(queue, {})
        newest = self._parts.store.queue(*queue).max_offset - 1
        early = {
            number: hold for number, hold in waiting.items() if newest <= hold.header.queue_offset
        }
        for number in early:
            del waiting[number]
        super().wake(now_ms, queue, out)
        waiting.update(early)


class Mutated(Broker):
    pulling_class = Late


broker = Mutated
