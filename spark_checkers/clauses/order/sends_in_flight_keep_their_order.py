"""What breaks ORD-15, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.clauses.rows import is_copy_topic
from specs.history.row import Row

CLAUSE = "ORD-15"
PIPELINED = {"in_flight": 5}


def _pairs(trace: Trace) -> list[tuple[Row, Row]]:
    """Sends of one producer to one queue that follow each other."""
    last: dict[object, Row] = {}
    found = []
    for row in trace.sent.values():
        usual = not row.delay_level and not is_copy_topic(row.topic) and row.value is None
        if not usual or row.message_id is None or row.seq_end is None or (row.attempt or 1) > 1:
            continue
        before = last.get((row.client_id, row.queue))
        if before is not None and (before.queue_offset or 0) < (row.queue_offset or 0):
            found.append((before, row))
        last[row.client_id, row.queue] = row
    return found


def _under_way_together(trace: Trace, before: Row, row: Row, *, swapped: bool) -> Planted:
    """The first one is answered only after the second one."""
    end = {"seq_end": (row.seq_end or 0) + 1, "ended_us": row.ended_us}
    places = (before.queue_offset, row.queue_offset)
    first, second = reversed(places) if swapped else places
    changes = {
        before.seq_begin: {**end, "queue_offset": first},
        row.seq_begin: {"queue_offset": second},
    }
    return trace.changed(changes)


def overtaken_in_flight(trace: Trace) -> Changes:
    for before, row in _pairs(trace):
        yield partial(_under_way_together, trace, before, row, swapped=True)


def answered_late(trace: Trace) -> Changes:
    for before, row in _pairs(trace):
        yield partial(_under_way_together, trace, before, row, swapped=False)


DEFECTS = (
    Mutant(
        "overtaken-in-flight",
        "ORD-15",
        "of two sends that are under way together the later one is stored first",
        overtaken_in_flight,
        config=PIPELINED,
    ),
)

LOOKALIKES = (
    Mutant(
        "answered-late",
        None,
        "of two sends that are under way together the later one is answered first",
        answered_late,
        config=PIPELINED,
    ),
)
