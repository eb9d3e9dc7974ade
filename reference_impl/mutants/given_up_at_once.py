"""A message goes to the dead letters at its first failure.

Shows as soon as a listener suspends a message that has retries left.
"""

from reference_impl.core.consumer import OrderlyConsumer

NAME = "given-up-at-once"
BUG = "B-31, orderly form: straight to the dead letters at the first failure"
SOURCE = "rocketmq-client-go #382: the default delay level was -1"
KILLED_BY = "RTY-5"
CONFIG = {"max_reconsume_times": 2}


class Mutated(OrderlyConsumer):
    def is_exhausted(self, times: int) -> bool:
        return True


consumer = Mutated
