"""What breaks PML-5, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import LEASED, STRANGER, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "PML-5"


def asked_in_vain(trace: Trace) -> Changes:
    for row in planting.handed_out_once(trace):
        yield partial(lambda a: _asks_at_the_end(trace, a, forgotten=True), row)


def asked_where_nothing_is(trace: Trace) -> Changes:
    for row in planting.handed_out_once(trace):
        yield partial(lambda a: _asks_at_the_end(trace, a), row)


def _asks_at_the_end(trace: Trace, row: Row, *, forgotten: bool = False) -> Planted:
    """Somebody asks the lane in vain after everything else. forgotten: nothing came of the message since."""
    nothing = dict.fromkeys((*planting.MESSAGE, "key_seq", "queue_offset", "reconsume_times"))
    columns: dict[str, Any] = {
        **nothing,
        "lease_id": None,
        "lease_until_us": None,
        "outcome": Outcome.REFUSED,
        "client_id": STRANGER,
        "process": STRANGER,
    }
    asked = trace.another(row, trace.rows[-1], 1, **columns)
    gone = {
        each.seq_begin
        for each in trace.of(Kind.ACK, Kind.RELEASE, Kind.RENEW)
        if each.lane == row.lane and each.queue_offset == row.queue_offset
    }
    left = trace.without(gone if forgotten else (), ())
    return Planted([*left.rows, asked], (row.seq_begin, asked.seq_begin))


DEFECTS = (
    Mutant(
        "asked-in-vain",
        "PML-5",
        "a message that nobody acknowledged is not handed out, long after its lease, though somebody asks",
        asked_in_vain,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "asked-where-nothing-is",
        None,
        "somebody asks in vain, and all is acknowledged",
        asked_where_nothing_is,
        generated=False,
        consumed=LEASED,
    ),
)
