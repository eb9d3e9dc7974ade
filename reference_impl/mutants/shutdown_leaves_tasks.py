"""A shutdown gives the leases back and says goodbye, and the consuming tasks go on.

Shows when a client with messages in its cache shuts down.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import by_broker
from reference_impl.core.io import CancelTimer, Shutdown
from specs.vocabulary import Kind, Outcome

NAME = "shutdown-leaves-tasks"
BUG = "B-65: the process queues are not destroyed at a shutdown"
SOURCE = "RocketMQ before commit 096ba51707 (2014)"
KILLED_BY = "LSE-3"


class Mutated(OrderlyConsumer):
    def on_shutdown(self, now_ms: int, input: Shutdown) -> None:
        if self._leave_op:
            return
        self._leave_op = self.begin(Kind.LEAVE, self._who)
        for name in ("lock", "persist", "heartbeat", "routes", "rebalance"):
            self._out.append(CancelTimer((name,)))
        for queue in sorted(self.lanes):
            self.persist(self.lanes[queue])
        for broker, queues in by_broker(self.lanes).items():
            self.unlock(broker, queues)
        self._unregister(now_ms)

    def _finish_leaving(self) -> None:
        self.end(self._leave_op, Outcome.OK, {})


consumer = Mutated
