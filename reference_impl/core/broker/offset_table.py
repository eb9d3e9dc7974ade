"""How far each group has consumed each queue.

A commit is an unconditional put: it may go back, go beyond the queue's end or be negative, and nobody asks who
holds the lease. A negative value reads as "nothing stored". The table lives in memory; `snapshot` is what the
broker writes to disk every interval, so a crash loses the commits since the last one.

An operator's reset puts a value and stands until a pull has told it to the group: until then commits for that queue
change nothing. So a commit that was under way can't undo it. Resets that stand die with the broker; their values
are stored like every other.
Source: docs/sources.md#offsets (ConsumerOffsetManager).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class OffsetKey(NamedTuple):
    topic: str
    group: str


Offsets = Mapping[OffsetKey, Mapping[int, int]]
"""Offset by queue id, by topic and group."""


class OffsetTable:
    """stored: what was on disk when the broker started."""

    def __init__(self, stored: Offsets) -> None:
        self._table: dict[OffsetKey, dict[int, int]] = {
            key: dict(queues) for key, queues in stored.items()
        }
        self._resets: dict[tuple[OffsetKey, int], int] = {}

    def commit(self, now_ms: int, group: str, topic: str, queue_id: int, offset: int) -> None:
        key = OffsetKey(topic, group)
        if (key, queue_id) not in self._resets:
            self._table.setdefault(key, {})[queue_id] = offset

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """An operator's word: it holds off every commit until `take_reset`."""
        key = OffsetKey(topic, group)
        self._table.setdefault(key, {})[queue_id] = offset
        self._resets[key, queue_id] = offset

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The reset that stands, which then stands no longer; None where there is none."""
        return self._resets.pop((OffsetKey(topic, group), queue_id), None)

    def fetch(self, now_ms: int, group: str, topic: str, queue_id: int) -> int | None:
        """The stored offset, None when there is none (or a negative one, which counts as none)."""
        offset = self._table.get(OffsetKey(topic, group), {}).get(queue_id, -1)
        return offset if offset >= 0 else None

    def forget(
        self, *, topic: str | None = None, group: str | None = None
    ) -> list[tuple[OffsetKey, int]]:
        """Away with what is stored for a topic, or for a group; (topic and group, queue id) of each that was there."""
        gone = [
            key for key in self._table if topic in (None, key.topic) and group in (None, key.group)
        ]
        found = [(key, queue_id) for key in gone for queue_id in sorted(self._table[key])]
        for key in gone:
            del self._table[key]
        for key, queue_id in [each for each in self._resets if each[0] in gone]:
            del self._resets[key, queue_id]
        return found

    def snapshot(self) -> dict[OffsetKey, dict[int, int]]:
        return {key: dict(queues) for key, queues in self._table.items()}
