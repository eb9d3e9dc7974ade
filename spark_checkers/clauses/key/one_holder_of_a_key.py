"""What breaks KEY-1, planted in a history."""

from typing import Any

from spark_checkers import places
from spark_checkers.changes import BEHIND_ALL, STRANGER, Change, Given, by, copy
from spark_checkers.planting import LEASED, defect, lookalike


def handed_next(row: Given, **columns: Any) -> Change:
    """A stranger is handed a message behind all others right after a hand-out; of its key, if no other is named."""
    # Its lease has no end in time: when it ended the message would be owed again.
    lease = {"lease_id": "planted", "lease_until_us": None}
    behind = {"queue_offset": BEHIND_ALL, "message_id": None}
    return copy(row, row, **by(STRANGER), **lease, **behind, **columns).about(row)


@defect(places.handed_out, where=lambda row: row.sharding_key is not None, **LEASED)
def second_holder_of_a_key(row: Given) -> Change:
    """A second member is handed the next message of a key while the first one has the last."""
    return handed_next(row)


@lookalike(places.handed_out, **LEASED)
def holder_of_another_key(row: Given) -> Change:
    """A second member is handed a message of another key while the first one has its own."""
    return handed_next(row, sharding_key="planted")
