"""A client that holds a lane is refused when it asks for it again.

Shows at the first renewal of any lane.
"""

from types import MappingProxyType

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import ON_LOCK, Action, LockTable, Situation

NAME = "own-lock-refused-when-asked-again"
BUG = "B-16: the lock is not re-entrant"
SOURCE = "RebalanceLockManager.tryLock without its isLocked fast path and owner test"
KILLED_BY = "LSE-4"


class Table(LockTable):
    on_lock = MappingProxyType({**ON_LOCK, Situation.OWN_LIVE: Action.REFUSE})


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
