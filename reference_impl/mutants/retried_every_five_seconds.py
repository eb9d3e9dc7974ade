"""A suspended batch comes again after 5 s, whatever time was asked for.

Shows whenever a listener suspends for less than some seconds.
"""

from reference_impl.core.consumer import OrderlyConsumer

NAME = "retried-every-five-seconds"
BUG = "B-40: a fixed pause of 5 s before every retry"
SOURCE = "rocketmq-client-cpp, ConsumeMessageOrderlyService"
KILLED_BY = "RTY-2"
FIVE_SECONDS_MS = 5_000


class Mutated(OrderlyConsumer):
    def pause_ms(self, asked_ms: int) -> int:
        return FIVE_SECONDS_MS


consumer = Mutated
