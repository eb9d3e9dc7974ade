"""Two groups share one lease for a queue: the second group is refused.

Shows when two groups consume one topic in order.
"""

from collections.abc import Hashable

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import Lease, LockTable

NAME = "key-without-group"
BUG = "B-16: the group is not part of the lock's key"
SOURCE = "RebalanceLockManager without the outer level of mqLockTable"
KILLED_BY = "WIR-24"
ORACLE = "model"


class Table(LockTable):
    def leases_of(self, group: str) -> dict[Hashable, Lease]:
        return super().leases_of("")


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
