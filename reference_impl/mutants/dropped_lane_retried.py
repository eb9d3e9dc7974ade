"""A suspended batch comes again when its time is up, although the lane was dropped and released meanwhile.

Shows when a client joins or leaves while a batch of the lane is suspended.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event, Phase, with_steps
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "dropped-lane-retried"
BUG = "B-46: the timed retry of a queue that was removed goes on"
SOURCE = "RocketMQ before commit 9c350a85c5 (2013)"
KILLED_BY = "ORD-13"


class MutatedLoop(OrderlyLoop):
    def __init__(self, consumer: OrderlyConsumer) -> None:
        super().__init__(consumer)
        self.entered: dict[int, ProcessQueue] = {}

    def enter(self, now_ms: int, pq: ProcessQueue) -> None:
        self.entered[pq.serial] = pq
        super().enter(now_ms, pq)

    def resubmit_due(self, now_ms: int, serial: int) -> None:
        pq = None if serial in self.consumer.serials else self.entered.get(serial)
        batch = [] if pq is None else pq.take(self.config.batch)
        if pq is None or not batch:
            super().resubmit_due(now_ms, serial)
        else:
            self.consumer.calls.free_threads -= 1
            self.call(pq, batch)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop
    life = with_steps({(Phase.ELSEWHERE, Event.CALL): Phase.ELSEWHERE})


consumer = Mutated
