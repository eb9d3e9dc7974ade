"""A message is given up after N + 2 deliveries instead of N + 1.

Shows when a message is suspended until it is given up; needs a limit.
"""

from reference_impl.core.consumer import OrderlyConsumer

NAME = "one-delivery-too-many"
BUG = "B-32: the counter must be greater than the limit, not as great"
SOURCE = "rocketmq-client-go, push_consumer.go checkReconsumeTimes"
KILLED_BY = "RTY-5"
CONFIG = {"max_reconsume_times": 2}


class Mutated(OrderlyConsumer):
    def is_exhausted(self, times: int) -> bool:
        return times > self.config.limit


consumer = Mutated
