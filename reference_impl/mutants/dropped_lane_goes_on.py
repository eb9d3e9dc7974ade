"""A lane that was dropped and released is consumed on until its cache is empty.

Shows when a client joins while the lanes hold several messages.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event, Phase, with_steps
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "dropped-lane-goes-on"
BUG = "B-40, B-51: the loop does not look whether its queue was dropped"
SOURCE = (
    "rocketmq-client-cpp, ConsumeMessageOrderlyService; rocketmq-client-go #905 (3f06d9a, 2022)"
)
KILLED_BY = "ORD-13"


class MutatedLoop(OrderlyLoop):
    def turn(self, now_ms: int, pq: ProcessQueue) -> None:
        goes_on = pq.phase is Phase.ELSEWHERE and not self.consumer.stopping
        if goes_on and (batch := pq.take(self.config.batch)):
            self.call(pq, batch)
        else:
            super().turn(now_ms, pq)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop
    life = with_steps({(Phase.ELSEWHERE, Event.CALL): Phase.ELSEWHERE})


consumer = Mutated
