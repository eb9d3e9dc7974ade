"""A message goes to the dead letters at its first failure.

Shows as soon as a listener suspends a message that has retries left.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.dead_letters import DeadLetters

NAME = "given-up-at-once"
BUG = "B-31, orderly form: straight to the dead letters at the first failure"
SOURCE = "rocketmq-client-go #382: the default delay level was -1"
KILLED_BY = "RTY-5"
CONFIG = {"max_reconsume_times": 2}


class MutatedDeadLetters(DeadLetters):
    def is_exhausted(self, times: int) -> bool:
        return True


class Mutated(OrderlyConsumer):
    dead_letters_class = MutatedDeadLetters


consumer = Mutated
