"""Pulls: which of them were told to go on elsewhere than they had asked.

By the code that the offset has moved, or as the pull was refused; further back also where no code is told. Who is told
to go on further ahead is not given any more what lies before that. An answer that nothing was found goes ahead as well,
over what is there and not wanted, and is none of them.
"""

from specs.clauses.rows import OFFSET_MOVED
from specs.facts.columns import NEVER, NONE, Ints
from specs.facts.rows import Rows
from specs.vocabulary import Kind, Outcome


def told_back(rows: Rows) -> Ints:
    """The positions of those that were told to go on further back."""
    where, code = rows.shared(_answered)
    moved = (code == OFFSET_MOVED) | (code == NONE) | rows.ended_as(Outcome.REFUSED)[where]
    found: Ints = where[moved & (rows.value[where] < rows.offset[where])]
    return found


def told_ahead(rows: Rows) -> Ints:
    """The positions of those that were told to go on further ahead."""
    where, code = rows.shared(_answered)
    moved = (code == OFFSET_MOVED) | rows.ended_as(Outcome.REFUSED)[where]
    found: Ints = where[moved & (rows.value[where] > rows.offset[where])]
    return found


def _answered(rows: Rows) -> tuple[Ints, Ints]:
    """The pulls whose answer names an offset, and the codes of these answers."""
    where = rows.of(Kind.PULL)
    if not len(where):  # who asks for no pulls may do without their columns
        return where, where
    told = (rows.value != NONE) & (rows.offset != NONE) & (rows.end < NEVER)
    where = where[told[where]]
    return where, rows.number("code")[where]
