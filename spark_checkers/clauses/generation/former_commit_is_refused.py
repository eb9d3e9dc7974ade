"""What breaks GEN-1, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers.planting import GENERATIONS, STRANGER, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "GEN-1"


def _between(trace: Trace, commit: Row, outcome: Outcome) -> Planted:
    """A stranger's commit right after one, and then the first one's once more, with that outcome."""
    stranger: dict[str, Any] = {
        "client_id": STRANGER,
        "process": STRANGER,
        "incarnation": f"{STRANGER}#1",
    }
    others = trace.another(commit, commit, 1, outcome=Outcome.OK, **stranger)
    return trace.with_more([others, trace.another(commit, commit, 2, outcome=outcome)])


def _last_commits(trace: Trace) -> list[Row]:
    """The last commit of each incarnation that was seen to begin, where it had the lane still."""
    found = []
    for rows in trace.works:
        commits = [row for row in rows if row.kind is Kind.COMMIT and row.value is not None]
        drop = next((row.seq_begin for row in rows if row.kind is Kind.DROP), None)
        if not commits or rows[0].kind is not Kind.ADD:
            continue
        ended = commits[-1].seq_end
        if ended is not None and (drop is None or ended < drop):
            found.append(commits[-1])
    return found


def former_one_taken(trace: Trace) -> Changes:
    for commit in _last_commits(trace):
        yield partial(_between, trace, commit, Outcome.OK)


def former_one_refused(trace: Trace) -> Changes:
    for commit in _last_commits(trace):
        yield partial(_between, trace, commit, Outcome.REFUSED)


DEFECTS = (
    Mutant(
        "former-generation-taken",
        "GEN-1",
        "who had a lane before commits once more after another's commit, and it is accepted",
        former_one_taken,
        config=GENERATIONS,
    ),
)

LOOKALIKES = (
    Mutant(
        "former-generation-refused",
        None,
        "who had a lane before commits once more after another's commit, and it is refused",
        former_one_refused,
        config=GENERATIONS,
    ),
)
