"""The guard lets a listener call start only when the last grant is too old.

Shows when a client with cached messages does not see the broker for longer than its own limit; otherwise it does
not work at all.
"""

from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.consumer.leases import Leases
from reference_impl.core.consumer.process_queue import ProcessQueue

NAME = "guard-inverted"
BUG = "B-03: the age of the lock is compared the wrong way round"
SOURCE = "rocketmq-client-cpp e1068cb (2020)"
KILLED_BY = "LSE-3"


class MutatedLeases(Leases):
    def holds_lease(self, now_ms: int, pq: ProcessQueue) -> bool:
        return pq.locked and now_ms - pq.last_lock_ms > self.config.client_lease_ms


class Mutated(OrderlyConsumer):
    leases_class = MutatedLeases


consumer = Mutated
