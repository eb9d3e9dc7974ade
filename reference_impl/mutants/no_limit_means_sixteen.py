"""An orderly consumer without a limit gives a message up after 16 retries, as a concurrent one does.

Shows when a message is suspended 17 times and no limit was set.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters

NAME = "no-limit-means-sixteen"
BUG = "B-30: the orderly default was 16 retries instead of no limit"
SOURCE = "RocketMQ before Apache, #174 (af0c5ede81, 2016)"
KILLED_BY = "RTY-8"
CONFIG = {"max_reconsume_times": -1}
SIXTEEN = 16


class MutatedDeadLetters(DeadLetters):
    def is_exhausted(self, times: int) -> bool:
        return times >= min(self.config.limit, SIXTEEN)


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
