"""A lease never runs out: only its owner's unlock frees a lane.

Shows when an owner dies without a word and somebody asks for its lane after the broker's limit.
"""

from types import MappingProxyType

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import ON_LOCK, Action, LockTable, Situation

NAME = "expired-not-freed"
BUG = "B-16: no expiry at all"
SOURCE = "RebalanceLockManager with LockEntry.isExpired always false"
KILLED_BY = "LSE-4"


class Table(LockTable):
    on_lock = MappingProxyType({**ON_LOCK, Situation.OTHER_EXPIRED: Action.REFUSE})


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
