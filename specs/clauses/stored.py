"""What SEND, READ and END_TRANSACTION rows say by themselves."""

import re
from functools import lru_cache

from specs.history.row import Row
from specs.vocabulary import Kind

COMMIT, ROLLBACK = 8, 12
"""What END_TRANSACTION says for a commit and for a rollback; 0 changes nothing."""

_DURATION = re.compile(r"(\d+)([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def is_marker(row: Row) -> bool:
    """Is this READ row the reading of a whole queue, and not a message that was found?"""
    return row.kind is Kind.READ and row.queue_offset is None and row.message_id is None


@lru_cache(maxsize=64)
def waits_ms(delay_levels: str) -> tuple[int, ...]:
    """The time of each level of the configured table, level 1 first; a word that is no duration waits for nothing."""
    found = (_DURATION.fullmatch(word) for word in delay_levels.split())
    return tuple(int(each[1]) * _UNIT_MS[each[2]] if each else 0 for each in found)
