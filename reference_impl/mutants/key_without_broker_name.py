"""Queues of the same number and topic share one lease, whichever broker they are asked for at.

Shows only when one broker is asked about another one's queues: a client at work never does that.
"""

from collections.abc import Hashable

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import LockTable
from specs.vocabulary import Queue

NAME = "key-without-broker-name"
BUG = "B-16: the broker's name is not part of the lock's key"
SOURCE = "RebalanceLockManager with a key that forgets MessageQueue.brokerName"
KILLED_BY = "WIR-24"
ORACLE = "model"


class Table(LockTable):
    def key(self, queue: Queue) -> Hashable:
        return queue.topic, queue.queue_id


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
