"""A lane that has run out of messages still counts as being consumed: the next message starts no task.

Shows when a message comes to a lane that was idle.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event, Phase, with_steps

NAME = "lane-stands-still"
BUG = "B-39: a flag stays set when the queue is empty, and the lane stands still"
SOURCE = "RocketMQ before commit 6f79c52cb0 (2013, issue 230)"
KILLED_BY = "LIV-1"


class Mutated(OrderlyConsumer):
    life = with_steps({(Phase.CHOOSING, Event.REST): Phase.WAITING})


consumer = Mutated
