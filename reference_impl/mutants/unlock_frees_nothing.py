"""An unlock is answered, and the lane stays locked until its lease has run out.

Shows when an owner gives a lane back and somebody else asks for it.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import ON_UNLOCK, Action, LockTable

NAME = "unlock-frees-nothing"
BUG = "B-05, broker form: the unlock is forgotten, the new owner waits for the expiry"
SOURCE = "RocketMQ before commit 4e41975178 (2015), there at the client"
KILLED_BY = "LSE-6"


class Table(LockTable):
    on_unlock = dict.fromkeys(ON_UNLOCK, Action.IGNORE)


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
