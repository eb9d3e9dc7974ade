"""A lane that is taken away is unlocked after one lock interval, although its listener call still runs.

Shows when a client joins or leaves while a listener takes longer than that: the successor starts beside it.
"""

from reference_impl.core.consumer import Consumer, OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event, Phase, with_steps
from reference_impl.core.consumer.lane_release import LaneRelease
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "forced-unlock"
BUG = "B-77 c: a forced unlock overlaps with a listener that is slower than 20 s"
SOURCE = "RebalancePushImpl since 5.2.0 (59e8f9b66e, issue 7644)"
KILLED_BY = "LSE-15"


class MutatedRelease(LaneRelease):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.waited_for: dict[int, ProcessQueue] = {}
        consumer.timers["force"] = self.force

    def drop(self, now_ms: int, pq: ProcessQueue, reason: str) -> None:
        super().drop(now_ms, pq, reason)
        if pq.phase is Phase.LEAVING:
            self.waited_for[pq.serial] = pq
            self.consumer.set_timer(("force", pq.serial), self.config.lock_interval_ms)

    def force(self, now_ms: int, serial: int) -> None:
        pq = self.waited_for.pop(serial)
        if pq.phase is Phase.LEAVING:
            self.release(pq)


class Mutated(OrderlyConsumer):
    release_class = MutatedRelease
    life = with_steps({(Phase.LEAVING, Event.RELEASE): Phase.ELSEWHERE})


consumer = Mutated
