"""A suspended batch comes again after 5 s, whatever time was asked for.

Shows whenever a listener suspends for less than some seconds.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.orderly_loop import OrderlyLoop

NAME = "retried-every-five-seconds"
BUG = "B-40: a fixed pause of 5 s before every retry"
SOURCE = "rocketmq-client-cpp, ConsumeMessageOrderlyService"
KILLED_BY = "RTY-2"
FIVE_SECONDS_MS = 5_000


class MutatedLoop(OrderlyLoop):
    def pause_ms(self, asked_ms: int) -> int:
        return FIVE_SECONDS_MS


class Mutated(OrderlyConsumer):
    loop_class = MutatedLoop


consumer = Mutated
