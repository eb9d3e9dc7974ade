"""Messages that come to an idle lane start no task; a timer starts it two seconds later.

Shows when a message comes to a lane whose messages are all consumed.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event, Phase, with_steps
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage

NAME = "idle-lane-looked-at-later"
BUG = "hand-made: what was pulled is kept, and only a timer looks for lanes with something to do"
SOURCE = "DefaultMQPushConsumerImpl.pullMessage, which submits what it has put"
KILLED_BY = "LIV-5"

LOOKS_AFTER_MS = 2_000


class MutatedLoop(OrderlyLoop):
    def keep(self, now_ms: int, pq: ProcessQueue, messages: list[StoredMessage]) -> None:
        if pq.put(messages):
            self.resubmit_later(pq, LOOKS_AFTER_MS)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop
    life = with_steps({(Phase.IDLE, Event.PAUSE): Phase.WAITING})


consumer = Mutated
