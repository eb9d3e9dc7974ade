"""What breaks PML-6, planted in a history."""

from collections.abc import Iterator

from spark_checkers.changes import Change, Given, alter, drop
from spark_checkers.planting import LEASED, Trace, defect, lookalike
from specs.vocabulary import Kind, Outcome


def given_up(trace: Trace) -> Iterator[Given]:
    """Whoever tells it, also the store."""
    letters = (row for row in trace.rows if row.kind is Kind.DEAD_LETTER)
    return (row for row in letters if row.outcome is Outcome.OK and row.seq_end is not None)


@defect(given_up, **LEASED)
def given_up_in_silence(row: Given) -> Change:
    """Nobody tells that a message was given up."""
    return drop(row)


@lookalike(given_up, **LEASED)
def given_up_or_acknowledged(row: Given) -> Change:
    """A message was not given up: somebody may have acknowledged it."""
    return alter(row, kind=Kind.ACK, outcome=Outcome.SENT)
