"""What breaks PML-6, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import LEASED, Changes, Mutant, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "PML-6"


def given_up_in_silence(trace: Trace) -> Changes:
    for row in _given_up(trace):
        yield partial(lambda a: trace.without([a.seq_begin], [a.seq_begin]), row)


def told_as_acknowledged(trace: Trace) -> Changes:
    for row in _given_up(trace):
        change = {"kind": Kind.ACK, "outcome": Outcome.SENT}
        yield partial(lambda a, to: trace.changed({a.seq_begin: to}), row, change)


def _given_up(trace: Trace) -> list[Row]:
    return [
        row
        for row in trace.rows
        if row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK and row.seq_end is not None
    ]


DEFECTS = (
    Mutant(
        "given-up-in-silence",
        "PML-6",
        "nobody tells that a message was given up",
        given_up_in_silence,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "given-up-or-acknowledged",
        None,
        "a message was not given up: somebody may have acknowledged it",
        told_as_acknowledged,
        generated=False,
        consumed=LEASED,
    ),
)
