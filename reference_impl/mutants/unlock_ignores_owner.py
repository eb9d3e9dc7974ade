"""Anybody's unlock frees a lane.

Shows when a stranger unlocks a held lane and somebody then gets it: a client that lost its lease and gives it
back late, or a standby that tries.
"""

from types import MappingProxyType

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import ON_UNLOCK, Action, LockTable, Situation

NAME = "unlock-ignores-owner"
BUG = "B-16: an unlock frees the lane whoever sends it"
SOURCE = "RebalanceLockManager.unlockBatch without its comparison of client ids"
KILLED_BY = "LSE-8"


class Table(LockTable):
    on_unlock = MappingProxyType(
        {**ON_UNLOCK, Situation.OTHER_LIVE: Action.FREE, Situation.OTHER_EXPIRED: Action.FREE}
    )


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
