"""Each pulled batch starts a consuming task of its own, whether or not one runs.

Shows when messages arrive while a call of their lane runs.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event, Phase, with_steps
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "two-tasks-per-lane"
BUG = "B-25: the next task is submitted although the last one has not finished"
SOURCE = "rocketmq-clients #382 (88998c2f, 2021, C++)"
KILLED_BY = "ORD-3"


TASK = (Phase.IDLE, Phase.IN_LINE, Phase.CALLING, Phase.WAITING)
EITHER_TASK = {
    Event.LINE_UP: Phase.IN_LINE,
    Event.THREAD: Phase.CHOOSING,
    Event.END: Phase.CHOOSING,
}
"""The phase is that of the task that did something last."""
LATE = {
    (Phase.FROZEN, Event.END): Phase.FROZEN,
    (Phase.FROZEN_CALLING, Event.LINE_UP): Phase.FROZEN_CALLING,
    (Phase.FROZEN_CALLING, Event.THREAD): Phase.FROZEN_CALLING,
    (Phase.LEAVING, Event.THREAD): Phase.LEAVING,
}
"""The lane is over for one of them, and the other comes by."""


class MutatedLoop(OrderlyLoop):
    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        pq.put(messages)
        self.resubmit(now_ms, pq)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop
    life = with_steps(
        {(phase, event): after for phase in TASK for event, after in EITHER_TASK.items()} | LATE
    )


consumer = Mutated
