"""A limit of -1, which means none, is compared as a number: every failed message is given up at once.

Shows at the first suspend of a consumer without a limit.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters

NAME = "no-limit-compared-as-number"
BUG = "B-47: the limit -1 is compared literally, so that every failed message is over it"
SOURCE = "RocketMQ issues 8490 and 8332 (2024), there for POP consumers"
KILLED_BY = "RTY-8"
CONFIG = {"max_reconsume_times": -1}


class MutatedDeadLetters(DeadLetters):
    def is_exhausted(self, times: int) -> bool:
        return times >= self.config.max_reconsume_times


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
