"""A lock request for several queues grants none of them when one is refused.

Shows when a client asks for free and held lanes in one request: at a handover in progress, or from a standby
that asks for everything.
"""

from collections.abc import Iterable

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import Action, LockTable
from specs.vocabulary import Queue

NAME = "batch-all-or-nothing"
BUG = "B-16: a batch is granted as a whole or not at all"
SOURCE = "RebalanceLockManager.tryLockBatch, the subset replaced by all or nothing"
KILLED_BY = "WIR-23"
ORACLE = "model"


class Table(LockTable):
    def lock_batch(
        self, now_ms: int, group: str, client_id: str, queues: Iterable[Queue]
    ) -> list[Queue]:
        wanted, leases = list(queues), self.leases_of(group)
        situations = [
            self.situation(now_ms, leases.get(self.key(queue)), client_id) for queue in wanted
        ]
        if any(self.on_lock[situation] is Action.REFUSE for situation in situations):
            return []
        return super().lock_batch(now_ms, group, client_id, wanted)


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
