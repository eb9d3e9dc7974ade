"""Places by the order of publishing, where the system has none."""

from __future__ import annotations

from typing import Any

from conformance.drivers.published import confirmed, placed
from specs.history.row import Row, make_row
from specs.vocabulary import Kind, Level, Outcome


def row(kind: Kind, outcome: Outcome = Outcome.OK, **columns: Any) -> Row:
    fixed = {
        "run": "r",
        "seq_begin": 1,
        "op_id": 1,
        "level": Level.CLIENT,
        "process": "p",
        "topic": "orders",
        "broker": "b0",
        "queue_id": 0,
        "started_us": 0,
        "clock": "host",
        "wall_us": 0,
    }
    return make_row(kind=kind, outcome=outcome, **{**fixed, **columns})


def test_places_count_in_each_queue() -> None:
    """A commit lies behind its message, and the end of a reading behind all."""
    rows = [
        row(Kind.SEND, queue_offset=900, message_id="m2"),
        row(Kind.SEND, queue_offset=500, message_id="m1"),
        row(Kind.SEND, queue_offset=700, queue_id=1, message_id="m3"),
        row(Kind.COMMIT, value=901),
        row(Kind.READ, value=901),
    ]
    found = [(each.queue_id, each.queue_offset, each.value) for each in placed(rows)]
    assert found == [(0, 1, None), (0, 0, None), (1, 0, None), (0, None, 2), (0, None, 2)]


def test_what_nobody_confirmed_is_not_read() -> None:
    """It may lie in the log and in no group's queue."""
    rows = [
        row(Kind.SEND, Outcome.UNKNOWN, message_id="m1"),
        row(Kind.SEND, message_id="m2"),
        row(Kind.READ, message_id="m1", queue_offset=1),
        row(Kind.READ, message_id="m2", queue_offset=2),
    ]
    read = [each.message_id for each in confirmed(rows) if each.kind is Kind.READ]
    assert read == ["m2"]
