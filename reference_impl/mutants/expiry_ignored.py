"""A lane is granted to whoever asks, whether or not its owner's lease still lives.

Shows as soon as a second client asks for a held lane: at a join, or from a standby that keeps asking.
"""

from types import MappingProxyType

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import ON_LOCK, Action, LockTable, Situation

NAME = "expiry-ignored"
BUG = "B-16: a living lease is granted to a stranger"
SOURCE = "RebalanceLockManager.tryLockBatch without its isExpired test"
KILLED_BY = "LSE-1"


class Table(LockTable):
    on_lock = MappingProxyType({**ON_LOCK, Situation.OTHER_LIVE: Action.TAKE})


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
