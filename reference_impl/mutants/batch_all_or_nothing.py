"""A lock request for several queues grants none of them when one is refused.

Shows when a client asks for free and held lanes in one request: at a handover in progress, or from a standby
that asks for everything.
"""

from collections.abc import Iterable

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import LockTable
from specs.vocabulary import Queue

NAME = "batch-all-or-nothing"
BUG = "B-16: a batch is granted as a whole or not at all"
SOURCE = "RebalanceLockManager.tryLockBatch, the subset replaced by all or nothing"
KILLED_BY = "LSE-4"


class Table(LockTable):
    def lock_batch(self, now_ms: int, group: str, client_id: str, queues: Iterable[Queue]) -> list[Queue]:
        wanted = list(queues)
        granted = super().lock_batch(now_ms, group, client_id, wanted)
        if len(granted) == len(wanted):
            return granted
        self.unlock_batch(now_ms, group, client_id, granted)
        return []


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
