"""An expired lane changes its owner, but not its age: the next one to ask takes it at once.

Shows when an owner dies without a word and, after its lease has run out and a survivor has taken the lane, a
third client asks before the survivor renews (within its lock interval).
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import Lease, LockTable

NAME = "takeover-keeps-old-timestamp"
BUG = "B-16: an expired entry is taken over without refreshing its timestamp"
SOURCE = "RebalanceLockManager.tryLockBatch, take-over branch without setLastUpdateTimestamp"
KILLED_BY = "LSE-1"


class Table(LockTable):
    def take(self, now_ms: int, client_id: str, lease: Lease | None) -> Lease:
        return Lease(client_id, now_ms if lease is None else lease.since_ms)


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
