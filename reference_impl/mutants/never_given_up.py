"""A message is retried for ever, whatever the limit.

Shows as soon as a message has failed once more than the limit allows.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters

NAME = "never-given-up"
BUG = "B-40: orderly consumption never turns to the dead letters"
SOURCE = "rocketmq-client-cpp, ConsumeMessageOrderlyService"
KILLED_BY = "RTY-5"


class MutatedDeadLetters(DeadLetters):
    def is_exhausted(self, times: int) -> bool:
        return False


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
