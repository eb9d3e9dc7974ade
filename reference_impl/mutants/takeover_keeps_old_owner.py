"""An expired lane is granted to who asks, and goes on in the name of its old owner.

Shows when an owner is silent for longer than the broker's limit, another client takes the lane, and the first one
comes back.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import Lease, LockTable

NAME = "takeover-keeps-old-owner"
BUG = "B-16: a take-over keeps the old client id"
SOURCE = "RebalanceLockManager.tryLockBatch, take-over branch without setClientId"
KILLED_BY = "LSE-1"


class Table(LockTable):
    def take(self, now_ms: int, client_id: str, lease: Lease | None) -> Lease:
        return Lease(client_id if lease is None else lease.client_id, now_ms)


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
