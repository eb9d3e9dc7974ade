"""A lane that is taken away is dropped, and its lease is not given back.

Shows when a client joins: the successor waits until the lease has run out.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.lane_life import Event
from reference_impl.core.consumer.lane_release import LaneRelease
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "handover-keeps-lease"
BUG = "B-05, B-06: no unlock at a rebalance, the new owner waits for the expiry"
SOURCE = "RocketMQ before commit 4e41975178 (2015); rocketmq-client-go #1220 (6c64ae4, 2025)"
KILLED_BY = "LSE-16"


class MutatedRelease(LaneRelease):
    def release(self, pq: ProcessQueue) -> None:
        pq.locked = False
        self.consumer.move(pq, Event.RELEASE)


class Mutated(OrderlyConsumer):
    release_class = MutatedRelease


consumer = Mutated
