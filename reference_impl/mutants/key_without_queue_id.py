"""All queues of a topic share one lease: who holds one queue keeps everybody else from the others.

Shows as soon as two clients of a group share a topic.
"""

from collections.abc import Hashable

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import LockTable
from specs.vocabulary import Queue

NAME = "key-without-queue-id"
BUG = "B-16: the queue's number is not part of the lock's key"
SOURCE = "RebalanceLockManager with a MessageQueue whose hashCode and equals leave queueId out"
KILLED_BY = "WIR-24"
ORACLE = "model"


class Table(LockTable):
    def key(self, queue: Queue) -> Hashable:
        return queue.topic, queue.broker


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
