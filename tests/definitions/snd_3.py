"""SND-3: a message whose every send was refused, with a code that says so, is neither read nor delivered.

Decisions where the page leaves room:

- Every send of the history counts, also one that was begun after the message had been seen; and so does a sighting
  before the first send.
- A send that does not tell its number is the first; the numbers up to the highest one have to be there, and no more
  than nine sends.
- A read shows the message where it was answered.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind
from tests.definitions.words import Rows, of, was_refused_for_certain, was_seen

MOST_TRIES = 9


def broken(rows: Rows, config: Config) -> bool:
    twice = any((fault.detail or "").startswith("duplicate ") for fault in of(rows, Kind.FAULT))
    return not twice and any(
        _was_never_stored(rows, seen)
        for seen in of(rows, Kind.DELIVER, Kind.READ)
        if seen.source_id is not None and was_seen(seen)
    )


def _was_never_stored(rows: Rows, seen: Row) -> bool:
    tries = [send for send in of(rows, Kind.SEND) if send.message_id == seen.source_id]
    numbers = {send.attempt or 1 for send in tries}
    all_told = numbers == set(range(1, len(numbers) + 1)) and len(tries) <= MOST_TRIES
    return bool(tries) and all_told and all(was_refused_for_certain(send) for send in tries)
