"""A refused renewal counts as a fresh grant, so the lane is consumed on.

Shows when a lane was taken over while its owner could not reach the broker, and the owner comes back with
messages cached: its renewals are refused and it consumes beside the new owner.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import Leases
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "refused-lease-still-consumes"
BUG = "B-10: a refusal refreshes the client's own validity"
SOURCE = "rocketmq-client-go, consumer.go lockAll"
KILLED_BY = "LSE-3"


class MutatedLeases(Leases):
    def lease_refused(self, now_ms: int, pq: ProcessQueue) -> None:
        pq.last_lock_ms = now_ms


class Mutated(OrderlyConsumer):
    leases_class = MutatedLeases


consumer = Mutated
