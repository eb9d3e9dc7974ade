"""What breaks CMT-11, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import STRANGER, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind

CLAUSE = "CMT-11"


def reset_overwritten(trace: Trace) -> Changes:
    """In a group of its own an operator resets, somebody commits, and a look-up answers the commit."""
    for commit in planting.acknowledged(trace):
        yield partial(lambda c: _reset_of_strangers(trace, c, won=False), commit)


def reset_in_flight(trace: Trace) -> Changes:
    for commit in planting.acknowledged(trace):
        yield partial(lambda c: _reset_of_strangers(trace, c, won=True), commit)


def _reset_of_strangers(trace: Trace, commit: Row, *, won: bool) -> Planted:
    value = commit.value or 0
    nobodys: dict[str, Any] = {"group": STRANGER, "client_id": STRANGER, "process": STRANGER}
    reset = planting.looked_up(trace, commit, commit, 1, value + 1)._replace(
        kind=Kind.RESET, **nobodys
    )
    again = planting.looked_up(trace, commit, commit, 2, value)._replace(
        kind=Kind.COMMIT, **nobodys
    )
    asked = planting.looked_up(trace, commit, commit, 3, value + 1 if won else value)._replace(
        **nobodys
    )
    return trace.with_more([reset, again, asked])


DEFECTS = (
    Mutant("reset-overwritten", "CMT-11", "a commit in flight undoes a reset", reset_overwritten),
)

LOOKALIKES = (
    Mutant("reset-in-flight", None, "a commit comes after a reset, which wins", reset_in_flight),
)
