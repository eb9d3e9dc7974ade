"""What breaks GEN-1, planted in a history."""

from collections.abc import Iterator

from spark_checkers.changes import STRANGER, STRANGERS_WORK, Change, Given, by, copy
from spark_checkers.planting import Trace, defect, lookalike
from specs.vocabulary import Kind, Outcome

GENERATIONS = {"generations": True}
"""Of a system that numbers the generations of its groups."""


def last_commits(trace: Trace) -> Iterator[Given]:
    """The last commit of each incarnation that was seen to begin, where it had the lane still."""
    for work in trace.works:
        commits = (row for row in reversed(work.of(Kind.COMMIT)) if row.value is not None)
        last = next(commits, None)
        is_over = last is not None and last.seq_end is not None and last.seq_end < work.until
        if is_over and work.rows[0].kind is Kind.ADD:
            yield last


def once_more(commit: Given, outcome: Outcome) -> Change:
    """A stranger's commit right after one, and then the first one's once more, with that outcome."""
    other = copy(commit, commit, **by(STRANGER, STRANGERS_WORK), outcome=Outcome.OK)
    return other + copy(commit, commit, outcome=outcome)


@defect(last_commits, config=GENERATIONS)
def former_generation_taken(commit: Given) -> Change:
    """Who had a lane before commits once more after another's commit, and it is accepted."""
    return once_more(commit, Outcome.OK)


@lookalike(last_commits, config=GENERATIONS)
def former_generation_refused(commit: Given) -> Change:
    """Who had a lane before commits once more after another's commit, and it is refused."""
    return once_more(commit, Outcome.REFUSED)
