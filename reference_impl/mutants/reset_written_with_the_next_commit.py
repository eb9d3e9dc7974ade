"""The offsets of a group are written to disk after a commit only: a reset waits in memory for the next one.

Shows when a broker crashes long after a reset that no commit of the group followed, and somebody asks for the offset.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.offset_table import OffsetKey, Offsets, OffsetTable

NAME = "reset-written-with-the-next-commit"
BUG = "hand-made: what is new since the last write is noted by commits, and the reset does not note it"
SOURCE = "ConsumerOffsetManager.commitOffset, where the number of commits brings on a new version of the table"
KILLED_BY = "CMT-7"


class NotedByCommits(OffsetTable):
    def __init__(self, stored: Offsets) -> None:
        super().__init__(stored)
        self._written = super().snapshot()
        self._changed: set[OffsetKey] = set()

    def commit(self, now_ms: int, group: str, topic: str, queue_id: int, offset: int) -> None:
        key = OffsetKey(topic, group)
        if (key, queue_id) not in self._resets:
            self._changed.add(key)
        super().commit(now_ms, group, topic, queue_id, offset)

    def snapshot(self) -> dict[OffsetKey, dict[int, int]]:
        table = super().snapshot()
        self._written = {
            key: queues if key in self._changed else self._written[key]
            for key, queues in table.items()
            if key in self._changed or key in self._written
        }
        self._changed.clear()
        return {key: dict(queues) for key, queues in self._written.items()}


class Mutated(Broker):
    offset_table_class = NotedByCommits


broker = Mutated
