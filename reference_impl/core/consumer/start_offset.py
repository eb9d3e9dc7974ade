"""Where a lane without a stored offset begins.

| consume from | a topic | the group's retry topic |
|---|---|---|
| first | 0 | 0 |
| last | the end | 0 |
| timestamp | the first message since then | the end |

A stored offset always wins, and an error in asking for it is never taken for "nothing stored".
Source: `RebalancePushImpl.computePullFromWhereWithException` of apache/rocketmq.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

NOT_FOUND = -1
"""The broker answered that nothing is stored."""
FAILED = -2
"""Nobody can say what is stored."""

HALF_AN_HOUR_MS = 30 * 60 * 1_000


class Where(StrEnum):
    ZERO = "zero"
    END = "end"
    TIME = "time"


START: Mapping[tuple[str, bool], Where] = {
    # (consume from, the group's retry topic)
    ("first", False): Where.ZERO,
    ("first", True): Where.ZERO,
    ("last", False): Where.END,
    ("last", True): Where.ZERO,
    ("timestamp", False): Where.TIME,
    ("timestamp", True): Where.END,
}
