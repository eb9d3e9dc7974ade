"""A shutdown cuts the running calls at once, and gives the leases back while the listeners still run.

Shows when a client shuts down in the middle of a call.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.shutdown import ShutdownSequence
from reference_impl.core.io import Shutdown

NAME = "shutdown-waits-for-nobody"
BUG = "B-01, at a shutdown: the locks are released while listeners are running"
SOURCE = "ConsumeMessageOrderlyService.shutdown(0), where awaitTerminationMillisWhenShutdown is left at its default"
KILLED_BY = "LSE-15"


class MutatedShutdown(ShutdownSequence):
    def begin(self, now_ms: int, input: Shutdown) -> None:
        super().begin(now_ms, input)
        if not self.consumer.has_left:
            self.waited_enough(now_ms)


class Mutated(OrderlyConsumer):
    shutdown_class = MutatedShutdown


consumer = Mutated
