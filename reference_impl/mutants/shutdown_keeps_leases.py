"""A shutdown says goodbye and gives no lease back.

Shows when a client shuts down while another one is there: it waits until the leases have run out.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.shutdown import ShutdownSequence

NAME = "shutdown-keeps-leases"
BUG = "B-06: no unlock at a shutdown"
SOURCE = "rocketmq-client-go #994 and #1015 (3b8b238, 2023)"
KILLED_BY = "LSE-16"


class MutatedShutdown(ShutdownSequence):
    def release_all(self, lanes: list[ProcessQueue]) -> None:
        for pq in lanes:
            self.consumer.release.mark_dropped(pq, "shutdown")
        for lane in list(self.consumer.tracked.values()):
            self.consumer.move(lane, Event.RELEASE)


class Mutated(OrderlyConsumer):
    shutdown_class = MutatedShutdown


consumer = Mutated
