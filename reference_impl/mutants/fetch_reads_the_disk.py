"""Who asks for the stored offset hears the one that was last written to disk.

Shows when somebody asks between a commit and the next write: at a handover, say.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.offset_table import OffsetKey, Offsets, OffsetTable

NAME = "fetch-reads-the-disk"
BUG = "B-69, for classic consumers: the offset takes effect later than it is acknowledged"
SOURCE = (
    "RocketMQ issue 8268 (d9ebe88767, 2024), there for POP: an offset is committed asynchronously"
)
KILLED_BY = "CMT-9"


class LateTable(OffsetTable):
    def __init__(self, stored: Offsets) -> None:
        super().__init__(stored)
        self._written = super().snapshot()

    def snapshot(self) -> dict[OffsetKey, dict[int, int]]:
        self._written = super().snapshot()
        return self._written

    def fetch(self, now_ms: int, group: str, topic: str, queue_id: int) -> int | None:
        return self._written.get(OffsetKey(topic, group), {}).get(queue_id)


class Mutated(Broker):
    offset_table_class = LateTable


broker = Mutated
