"""The guard is content with the flag, or with a grant that is young enough, where it needs both.

Shows when a client with cached messages is refused its lane (by a broker that has forgotten it, say), or does not
see the broker for longer than its own limit.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import Leases
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "guard-locked-or-fresh"
BUG = "B-02: validity tested as locked OR not expired"
SOURCE = "RocketMQ before commit 45cb093e79 (2014)"
KILLED_BY = "LSE-3"


class MutatedLeases(Leases):
    def holds_lease(self, now_ms: int, pq: ProcessQueue) -> bool:
        return pq.locked or now_ms - pq.last_lock_ms <= self.config.client_lease_ms


class Mutated(OrderlyConsumer):
    leases_class = MutatedLeases


consumer = Mutated
