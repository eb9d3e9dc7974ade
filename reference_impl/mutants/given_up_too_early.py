"""A message is given up after N deliveries instead of N + 1.

Shows when a message is suspended until it is given up; needs a limit above 0.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters

NAME = "given-up-too-early"
BUG = "B-32, the other way: the retry to come is counted already"
SOURCE = "the off-by-one of rocketmq-client-go's checkReconsumeTimes, turned round"
KILLED_BY = "RTY-5"
CONFIG = {"max_reconsume_times": 2}


class MutatedDeadLetters(DeadLetters):
    def is_exhausted(self, times: int) -> bool:
        return times + 1 >= self.config.limit


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
