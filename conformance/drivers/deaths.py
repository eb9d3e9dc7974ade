"""When a client died, where its peers learn of that at once.

The harness notes a death once the process is gone. A server that sees the connection end has given the work to somebody
else by then, within milliseconds; where a lease has to run out first nobody notices the difference. What is certain is
that the client lived when it said its last word, or was started: its death is put right behind that. Whatever a death
excuses is so excused from the first moment that it may have been true.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.row import Row
from specs.vocabulary import Kind

ROOM = 1024
"""Places in the order between two that were recorded."""


def at_last_words(rows: Sequence[Row]) -> list[Row]:
    """The rows, in order, with each client's death right behind the last that it told before."""
    found: list[Row] = []
    deaths = 0
    last: dict[str, tuple[int, int]] = {}  # client → its last word: where in the order, and when
    told = sorted(
        (moment for row in rows if row.kind is not Kind.CRASH for moment in _moments(row)),
        key=lambda moment: moment[1],
    )
    words = iter([*told, ("", 1 << 62, 0)])
    word = next(words)
    for row in rows:
        while word[1] < row.seq_begin:
            last[word[0]] = word[1:]
            word = next(words)
        found.append(_spaced(row))
        if row.kind is Kind.CRASH and row.client_id in last:
            place, at_us = last[row.client_id]
            deaths += 1
            behind = place * ROOM + 1 + deaths % (ROOM - 1)
            found[-1] = found[-1]._replace(seq_begin=behind, seq_end=behind, started_us=at_us)
    return sorted(found, key=lambda row: row.seq_begin)


def _moments(row: Row) -> list[tuple[str, int, int]]:
    """(client, place in the order, time in µs) of what a client said by this row."""
    if row.client_id is None:
        return []
    found = [(row.client_id, row.seq_begin, row.started_us)]
    if row.seq_end is not None and row.ended_us is not None:
        found.append((row.client_id, row.seq_end, row.ended_us))
    return found


def _spaced(row: Row) -> Row:
    return row._replace(
        seq_begin=row.seq_begin * ROOM,
        seq_end=None if row.seq_end is None else row.seq_end * ROOM,
    )
