"""The suspend time is the listener's own, even when that is next to nothing.

Shows when a listener asks for less than 10 ms.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop
from reference_impl.core.consumer.results import CONSUMER_DEFAULT

NAME = "suspend-not-clamped"
BUG = "B-35: the time that the context asks for is not clamped"
SOURCE = "rocketmq-client-go, push_consumer.go"
KILLED_BY = "RTY-1"


class MutatedLoop(OrderlyLoop):
    def pause_ms(self, asked_ms: int) -> int:
        return self.config.suspend_ms if asked_ms == CONSUMER_DEFAULT else asked_ms


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
