"""A message that comes answers the pull that has waited longest; the others go on waiting until their time is up.

Shows when two groups wait at the end of one queue.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.pull import Hold, Pulling
from reference_impl.core.io import Effect

NAME = "only-the-first-waiter-woken"
BUG = "hand-made: whoever waits is kept by queue, and one of them is taken out for each message, as for a condition"
SOURCE = "PullRequestHoldService.notifyMessageArriving, which goes through all that wait"
KILLED_BY = "LIV-4"


class HalfAsleep(Pulling):
    def wake(self, now_ms: int, queue: tuple[str, int], out: list[Effect]) -> None:
        waiting = self._holds.get(queue, {})
        others: dict[int, Hold] = {number: waiting[number] for number in list(waiting)[1:]}
        for number in others:
            del waiting[number]
        super().wake(now_ms, queue, out)
        waiting.update(others)


class Mutated(Broker):
    pulling_class = HalfAsleep


broker = Mutated
