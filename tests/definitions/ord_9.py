"""ORD-9: within a broker epoch, a send acknowledged before another began has the smaller offset in their queue.

Decisions where the page leaves room:

- One offset for two messages is not smaller, so it breaks the promise.
- A crash excuses from the begin of the earlier send to the end of what shows the later one's place.
- A later send is compared with what a reader shows of an earlier one if it had begun when that was read.
- A further try of a message is compared with what was acknowledged before its first one.
- Another attempt may have put a message there if another send of its id that was not refused was begun before it was
  read, or if this one is not the first.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import Rows, before, is_plain, of, same_queue, took_effect


def broken(rows: Rows, config: Config) -> bool:
    return any(
        is_plain(first)
        and is_plain(second)
        and first.outcome is Outcome.OK
        and same_queue(first, second)
        and before(first, _first_try(rows, second) or first)
        and any(
            place <= there
            and not (told is not first and shown is second and before(told, second))
            and not any(_crashed(rows, first, row) for row in (told, shown))
            for there, told in _places(rows, first)
            for place, shown in _places(rows, second)
        )
        for first in of(rows, Kind.SEND)
        for second in took_effect(rows, Kind.SEND)
    )


def _first_try(rows: Rows, send: Row) -> Row | None:
    """The send itself; of a further try the first one of its message, where that is known and was told no place."""
    if (send.attempt or 1) == 1:
        return send
    tries = [
        other
        for other in of(rows, Kind.SEND)
        if other.message_id == send.message_id
        and same_queue(other, send)
        and other.outcome in (Outcome.OK, Outcome.UNKNOWN)
        and (other.queue_offset is None or (other.attempt or 1) > 1)
    ]
    return tries[0] if (tries[0].attempt or 1) == 1 else None


def _places(rows: Rows, send: Row) -> list[tuple[int, Row]]:
    """Where it lies, and which row says so: its answer, or a reader where no other attempt may have put it there."""
    if send.outcome is Outcome.OK and send.queue_offset is not None:
        return [(send.queue_offset, send)]
    return [
        (read.queue_offset, read)
        for read in of(rows, Kind.READ)
        if read.outcome is Outcome.OK
        and (send.attempt or 1) == 1
        and read.message_id == send.message_id
        and same_queue(read, send)
        and read.queue_offset is not None
        and not before(read, send)
        and not any(
            other.message_id == send.message_id
            and other is not send
            and same_queue(other, send)
            and not before(read, other)
            for other in took_effect(rows, Kind.SEND)
        )
    ]


def _crashed(rows: Rows, first: Row, shown: Row) -> bool:
    return any(
        crash.broker == first.broker
        and first.seq_begin < crash.seq_begin
        and (shown.seq_end is None or crash.seq_begin < shown.seq_end)
        for crash in of(rows, Kind.CRASH)
    )
