"""A message is given up after N + 2 deliveries instead of N + 1.

Shows when a message is suspended until it is given up; needs a limit.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters

NAME = "one-delivery-too-many"
BUG = "B-32: the counter must be greater than the limit, not as great"
SOURCE = "rocketmq-client-go, push_consumer.go checkReconsumeTimes"
KILLED_BY = "RTY-5"
CONFIG = {"max_reconsume_times": 2}


class MutatedDeadLetters(DeadLetters):
    def is_exhausted(self, times: int) -> bool:
        return times > self.config.limit


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
