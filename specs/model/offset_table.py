"""The offset table, seen from outside: per group and queue the set of values that may be stored.

A commit is taken as it is (no comparison, no fence). One without an answer may have been applied, or not.
(docs/sources.md#offsets)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specs.vocabulary import Lane

NOTHING = -1
"""Stands for 'nothing is stored'."""


@dataclass(slots=True)
class OffsetTable:
    stored: dict[Lane, frozenset[int]] = field(default_factory=dict)

    def values(self, lane: Lane) -> frozenset[int]:
        return self.stored.get(lane, frozenset({NOTHING}))

    def commit(self, lane: Lane, value: int, answered: bool) -> None:
        self.stored[lane] = frozenset({value}) if answered else self.values(lane) | {value}

    def fetched(self, lane: Lane, value: int) -> bool:
        """Take in a fetched value; False when no allowed state explains it. The table then follows it."""
        explained = value in self.values(lane)
        self.stored[lane] = frozenset({value})
        return explained
