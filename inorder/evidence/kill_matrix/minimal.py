"""Is a witness the smallest set of events that proves the violation?"""

from __future__ import annotations

from collections.abc import Sequence

from specs.clauses.clause import Clause
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.verdicts.examine import examine

LARGEST = 10
"""No witness may hold more events."""


def is_minimal(clause: Clause, rows: Sequence[Row], info: RunInfo) -> bool:
    """The events alone are refuted by the clause, and without any one of them they are not, or in another shape.

    A part of them may be wrong in a shape of its own, where what made it right is not among them.
    """

    def found(some: Sequence[Row]) -> set[str]:
        tally = examine(some, info, (clause,)).tallies[clause.id]
        return {name for name, each in tally.found.items() if each.violations}

    parts = ([*rows[:n], *rows[n + 1 :]] for n in range(len(rows)))
    return bool(rows) and bool(found(rows).difference(*map(found, parts)))
