"""A renewal is granted, but the lease goes on counting from its first grant.

Shows when a lane is held for longer than the broker's limit while somebody else asks for it.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import Lease, LockTable

NAME = "renewal-does-not-refresh"
BUG = "B-16: a renewal keeps the old timestamp"
SOURCE = "RebalanceLockManager.isLocked without setLastUpdateTimestamp"
KILLED_BY = "LSE-1"


class Table(LockTable):
    def renew(self, now_ms: int, lease: Lease) -> None:
        if self.is_expired(now_ms, lease):
            super().renew(now_ms, lease)


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
