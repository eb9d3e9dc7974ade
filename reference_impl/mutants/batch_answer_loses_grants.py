"""Of the lanes that a request was granted, the answer names only the last one.

Shows as soon as a client asks for two lanes at once: it is told that it was refused what is free, or its own.
"""

from collections.abc import Iterable

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.lock_table import LockTable
from specs.vocabulary import Queue

NAME = "batch-answer-loses-grants"
BUG = "B-13: grants are lost where the answers are gathered"
SOURCE = "RocketMQ issue 5542 (bcfd0e3af4, 2022), the proxy's lockBatchMQ"
KILLED_BY = "LSE-4"


class Table(LockTable):
    def lock_batch(
        self, now_ms: int, group: str, client_id: str, queues: Iterable[Queue]
    ) -> list[Queue]:
        return super().lock_batch(now_ms, group, client_id, queues)[-1:]


class Mutated(Broker):
    lock_table_class = Table


broker = Mutated
