"""A lock request is answered with the queues that were asked for, not with those that were granted.

Shows as soon as a second client asks for a held lane.
"""

from collections.abc import Iterable

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import LockTable
from specs.vocabulary import Queue

NAME = "batch-answers-what-was-asked"
BUG = "B-16: the answer holds the requested set, not the granted one"
SOURCE = "AdminBrokerProcessor.lockBatchMQ answering with requestBody.getMqSet"
KILLED_BY = "WIR-23"
ORACLE = "model"


class Table(LockTable):
    def lock_batch(
        self, now_ms: int, group: str, client_id: str, queues: Iterable[Queue]
    ) -> list[Queue]:
        wanted = list(queues)
        super().lock_batch(now_ms, group, client_id, wanted)
        return wanted


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
