"""KEY-1: nobody is handed a message of a key while another member's lease of another message of that key lives.

What is held, and until when, is said in PML-2; its decisions are this one's too.

- A message that the broker had removed before the other hand-out was answered is held no more.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.pml_2 import lives_on
from tests.definitions.words import (
    Rows,
    before,
    began_before,
    end_of,
    of,
    offset,
    same_lane,
    same_queue,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    handed = [row for row in of(rows, Kind.RECEIVE) if row.outcome is Outcome.OK]
    return any(
        began_before(first, second)
        and first.client_id != second.client_id
        and same_lane(first, second)
        and first.queue_offset != second.queue_offset
        and None is not first.sharding_key == second.sharding_key
        and _holds(rows, config, first, second)
        and (before(first, second) or _holds(rows, config, second, first))
        for first in handed
        for second in handed
    )


def _holds(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    removed = any(
        same_queue(trim, first)
        and trim.seq_begin < end_of(second)
        and offset(first) < (trim.value or 0)
        for trim in took_effect(rows, Kind.TRIM)
    )
    return not removed and lives_on(rows, config, first, second)
