"""A suspended batch is delivered again at once, whatever time the listener asked for.

Shows whenever a listener suspends.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop

NAME = "suspend-ignored"
BUG = "B-35: no pause after a suspend, a hot loop"
SOURCE = "rocketmq-client-go, push_consumer.go"
KILLED_BY = "RTY-1"


class MutatedLoop(OrderlyLoop):
    def pause_ms(self, asked_ms: int) -> int:
        return 0


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
