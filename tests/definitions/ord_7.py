"""ORD-7: within a broker epoch, all readers see the same message at an offset.

Decisions where the page leaves room:

- A delivery shows the message when it begins, an answer or a read somewhere between its begin and its end: a crash
  excuses from the first begin to the moment at which both were shown.
- A delivery after a crash shows what is there now if an ADD of its incarnation follows the last crash.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import Rows, adds, broker_died, end_of, is_plain, of, same_queue


def broken(rows: Rows, config: Config) -> bool:
    return any(
        first.message_id != second.message_id
        and first.queue_offset == second.queue_offset
        and same_queue(first, second)
        and not _crashed_between(rows, first, second)
        for first in _shown(rows)
        for second in _shown(rows)
    )


def _shown(rows: Rows) -> list[Row]:
    """Who was shown, or told, that a message lies at an offset of the queue as the broker has it now."""
    return [
        row
        for row in of(rows, Kind.DELIVER, Kind.READ, Kind.SEND)
        if row.message_id is not None
        and row.queue_offset is not None
        and (row.kind is Kind.DELIVER or row.outcome is Outcome.OK)
        and (row.kind is not Kind.SEND or is_plain(row))
        and not (row.kind is Kind.DELIVER and _may_be_held(rows, row))
    ]


def _may_be_held(rows: Rows, call: Row) -> bool:
    """May its incarnation have pulled the message before the broker's last crash?"""
    begins = adds(rows, call)
    since = begins[-1].seq_begin if begins else 0
    return broker_died(rows, call.broker, since, call.seq_begin)


def _crashed_between(rows: Rows, first: Row, second: Row) -> bool:
    begin = min(first.seq_begin, second.seq_begin)
    return broker_died(rows, first.broker, begin, max(_moment(first), _moment(second)))


def _moment(row: Row) -> int:
    return row.seq_begin if row.kind is Kind.DELIVER else end_of(row)
