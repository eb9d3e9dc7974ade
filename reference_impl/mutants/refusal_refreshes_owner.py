"""Every refusal renews the owner's lease, so a dead owner keeps its lane for as long as somebody wants it.

Shows when an owner dies without a word while another client keeps asking for its lane more often than the
broker's limit.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import Lease, LockTable

NAME = "refusal-refreshes-owner"
BUG = "B-16: a refused request refreshes the owner's timestamp"
SOURCE = "RebalanceLockManager.tryLockBatch, refresh before the comparison of client ids"
KILLED_BY = "LSE-7"


class Table(LockTable):
    def refuse(self, now_ms: int, lease: Lease | None) -> None:
        if lease is not None:
            lease.since_ms = now_ms


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
