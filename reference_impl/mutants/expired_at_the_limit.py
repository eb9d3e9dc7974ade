"""A lease that is exactly as old as the limit has run out.

Shows when somebody asks for a held lane in the very millisecond in which its lease reaches the limit.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import Lease, LockTable

NAME = "expired-at-the-limit"
BUG = "B-16: the expiry compares with >= instead of >"
SOURCE = "RebalanceLockManager.LockEntry.isExpired"
KILLED_BY = "LSE-14"


class Table(LockTable):
    def is_expired(self, now_ms: int, lease: Lease) -> bool:
        return now_ms - lease.since_ms >= self.limit_ms


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
