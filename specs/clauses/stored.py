"""What the clauses about sends ask of a SEND row: may its message be stored, from when on is it seen, and where.

A refusal with a code that says that nothing was stored is certain. The codes 10 to 12 say that the message *is* stored
(not flushed or replicated in time), code 1 is a broker's internal error, and a send that ended with one of these,
without an answer or without a code may have stored the message. A half message waits for its commit and not for a
delay level. Of a batch the answer tells the place of the first message only; the others lie behind it, in their order.
"""

from __future__ import annotations

import re
from functools import lru_cache

from specs.clauses.words import MS
from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome, Queue

STORED_WEAKLY = frozenset({10, 11, 12})
"""FLUSH_DISK_TIMEOUT, SLAVE_NOT_AVAILABLE, FLUSH_SLAVE_TIMEOUT: stored, but not as safely as was asked for."""
NOT_CERTAIN = frozenset({0, 1}) | STORED_WEAKLY
"""Answer codes after which a message lies in its queue, or may lie there."""
COMMIT, ROLLBACK = 8, 12
"""What END_TRANSACTION says for a commit and for a rollback; 0 changes nothing."""

_DURATION = re.compile(r"(\d+)([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def is_refused(row: Row) -> bool:
    """Does the answer to this send say that nothing was stored?"""
    return (
        row.outcome is Outcome.REFUSED
        and row.seq_end is not None
        and row.code is not None
        and row.code not in NOT_CERTAIN
    )


def is_half(row: Row) -> bool:
    """Is this the send of a half message?"""
    return row.detail is not None and row.detail.split(",")[0] == "half"


def is_delayed(row: Row) -> bool:
    """Was a delay level asked for? A half message has none: its transaction's end decides."""
    return row.delay_level is not None and row.delay_level > 0 and not is_half(row)


def lies_at_once(row: Row) -> bool:
    """Does an answer to this send name the place where consumers find the message?"""
    return not is_delayed(row) and not is_half(row)


def is_marker(row: Row) -> bool:
    """Is this READ row the reading of a whole queue, and not a message that was found?"""
    return row.kind is Kind.READ and row.queue_offset is None and row.message_id is None


def place(row: Row) -> tuple[Queue, int | None]:
    return (row.queue, row.queue_offset)


@lru_cache(maxsize=64)
def waits_ms(delay_levels: str) -> tuple[int, ...]:
    """The time of each level of the configured table, level 1 first; a word that is no duration waits for nothing."""
    found = (_DURATION.fullmatch(word) for word in delay_levels.split())
    return tuple(int(each[1]) * _UNIT_MS[each[2]] if each else 0 for each in found)


def level_of(row: Row, config: Config) -> int:
    """The level that a message waits on, 0 for none. One beyond the table is the last one."""
    return min(row.delay_level or 0, len(waits_ms(config.delay_levels))) if is_delayed(row) else 0


def wait_us(row: Row, config: Config) -> int:
    """How long the message waits after the broker stored it."""
    level = level_of(row, config)
    return waits_ms(config.delay_levels)[level - 1] * MS if level else 0
