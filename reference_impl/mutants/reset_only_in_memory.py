"""What a reset replaced stays in the file until the group has been told, and a crash before that brings it back.

Shows when a broker crashes longer than a persist interval after a reset, and somebody asks for the offset then.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.offset_table import OffsetKey, Offsets, OffsetTable

NAME = "reset-only-in-memory"
BUG = "hand-made: a reset lies in a table of its own, which goes to no file"
SOURCE = "ConsumerOffsetManager.assignResetOffset: resetOffsetTable is transient, so it writes offsetTable as well"
KILLED_BY = "CMT-7"


class TransientResets(OffsetTable):
    def __init__(self, stored: Offsets) -> None:
        super().__init__(stored)
        self._replaced: dict[tuple[OffsetKey, int], int] = {}

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        key = OffsetKey(topic, group)
        self._replaced.setdefault((key, queue_id), self._table.get(key, {}).get(queue_id, -1))
        super().reset(group, topic, queue_id, offset)

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        self._replaced.pop((OffsetKey(topic, group), queue_id), None)
        return super().take_reset(group, topic, queue_id)

    def snapshot(self) -> dict[OffsetKey, dict[int, int]]:
        written = super().snapshot()
        for (key, queue_id), offset in self._replaced.items():
            if key in written:
                written[key][queue_id] = offset
        return written


class Mutated(Broker):
    offset_table_class = TransientResets


broker = Mutated
