"""A commit that arrives after an operator's reset puts the old offset back.

Shows when a member reports, as it does every few seconds, between the reset and the group's next pull.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.offset_table import OffsetKey, OffsetTable

NAME = "reset-overwritten-by-a-commit"
BUG = "B-59: a reset is without effect, for a commit in flight overwrites it"
SOURCE = "RocketMQ 399bce3b4d: a commit races with a reset, which is then without effect"
KILLED_BY = "CMT-11"


class UnguardedTable(OffsetTable):
    def commit(self, now_ms: int, group: str, topic: str, queue_id: int, offset: int) -> None:
        self._table.setdefault(OffsetKey(topic, group), {})[queue_id] = offset


class Mutated(Broker):
    offset_table_class = UnguardedTable


broker = Mutated
