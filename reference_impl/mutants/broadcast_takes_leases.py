"""A broadcast consumer asks for a lease before it begins a lane, as an orderly one does.

Shows at its first lane; the other members wait for a lease that nobody gives back.
"""

from reference_impl.core.consumer import BroadcastConsumer
from reference_impl.core.consumer.leases import Leases

NAME = "broadcast-takes-leases"
BUG = "B-12: a broadcast consumer needs leases too, so that only one member is given a queue's messages"
SOURCE = "apache/rocketmq #331 of the old tracker (2014) and issue 8772 (2024)"
KILLED_BY = "LSE-12"
CONFIG = {"mode": "concurrent", "message_model": "broadcasting"}


class Mutated(BroadcastConsumer):
    leases_class = Leases


consumer = Mutated
