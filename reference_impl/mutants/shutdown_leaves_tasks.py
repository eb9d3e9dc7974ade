"""A shutdown gives the leases back and says goodbye, and the consuming tasks go on.

Shows when a client with messages in its cache shuts down.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import by_broker
from reference_impl.core.consumer.shutdown import ShutdownSequence
from reference_impl.core.io import CancelTimer, Shutdown
from specs.vocabulary import Kind, Outcome

NAME = "shutdown-leaves-tasks"
BUG = "B-65: the process queues are not destroyed at a shutdown"
SOURCE = "RocketMQ before commit 096ba51707 (2014)"
KILLED_BY = "LSE-3"


class MutatedShutdown(ShutdownSequence):
    def begin(self, now_ms: int, input: Shutdown) -> None:
        if self.leave_op:
            return
        self.leave_op = self.consumer.begin(Kind.LEAVE, self.consumer.who)
        for name in ("lock", "persist", "heartbeat", "routes", "rebalance"):
            self.consumer.do(CancelTimer((name,)))
        for queue in sorted(self.consumer.lanes):
            self.consumer.offsets.persist(self.consumer.lanes[queue])
        for broker, queues in by_broker(self.consumer.lanes).items():
            self.consumer.leases.unlock(broker, queues)
        self.unregister(now_ms)

    def finish_leaving(self) -> None:
        self.consumer.end(self.leave_op, Outcome.OK, {})


class Mutated(OrderlyConsumer):
    shutdown_class = MutatedShutdown


consumer = Mutated
