"""Queues of the same number of two topics share one lease.

Shows at a handover of a group that reads two topics (its own retry topic is one): what is released of one topic
frees the other's lane as well.
"""

from collections.abc import Hashable

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import LockTable
from specs.vocabulary import Queue

NAME = "key-without-topic"
BUG = "B-16: the topic is not part of the lock's key"
SOURCE = "RebalanceLockManager with a key that forgets MessageQueue.topic"
KILLED_BY = "WIR-24"
ORACLE = "model"


class Table(LockTable):
    def key(self, queue: Queue) -> Hashable:
        return queue.broker, queue.queue_id


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
