"""A lease is asked for when a lane is added, and then only when a consuming task finds that it has run out.

Shows with every lane that a client keeps for longer than an interval.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import Leases

NAME = "renewal-forgotten"
BUG = "hand-made: the lanes are not locked again each interval"
SOURCE = "ConsumeMessageOrderlyService.start without its schedule of lockMQPeriodically"
KILLED_BY = "LSE-13"


class MutatedLeases(Leases):
    def renew_all(self, now_ms: int) -> None:
        """Nothing: the timer ticks in vain."""


class Mutated(OrderlyConsumer):
    leases_class = MutatedLeases


consumer = Mutated
