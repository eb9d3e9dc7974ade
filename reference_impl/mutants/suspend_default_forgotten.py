"""A listener that names no suspend time gets none, and one below 10 ms gets just that.

Shows whenever a listener suspends without naming a time.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop

NAME = "suspend-default-forgotten"
BUG = "B-35: -1 is not replaced by the consumer's default, nor is the time clamped"
SOURCE = "rocketmq-client-go, push_consumer.go (no default for the context's suspend time)"
KILLED_BY = "RTY-1"


class MutatedLoop(OrderlyLoop):
    def pause_ms(self, asked_ms: int) -> int:
        return max(0, asked_ms)


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
