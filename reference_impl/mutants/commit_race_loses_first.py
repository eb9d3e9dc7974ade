"""When two queues of a group get their first commits within the same half second, only the last one is kept.

A consumer repeats its commits every few seconds and starts at the beginning where nothing is stored, so the
history of well-behaved clients shows repeated messages at most. A fetch right after the commits shows it.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.offset_table import OffsetKey, Offsets, OffsetTable

NAME = "commit-race-loses-first"
BUG = "B-57: the first commits of two queues race, and one is lost"
SOURCE = "apache/rocketmq pull request 1427: get, then put, instead of putIfAbsent"
KILLED_BY = "WIR-13"
ORACLE = "model"
RACE_MS = 500


class RacingTable(OffsetTable):
    def __init__(self, stored: Offsets) -> None:
        super().__init__(stored)
        self._first_ms: dict[OffsetKey, int] = {}

    def commit(self, now_ms: int, group: str, topic: str, queue_id: int, offset: int) -> None:
        key = OffsetKey(topic, group)
        if key not in self._table:
            self._first_ms[key] = now_ms
        elif now_ms - self._first_ms.get(key, now_ms - RACE_MS) < RACE_MS:
            self._table[key] = {}
        super().commit(now_ms, group, topic, queue_id, offset)


class Mutated(Broker):
    offset_table_class = RacingTable


broker = Mutated
