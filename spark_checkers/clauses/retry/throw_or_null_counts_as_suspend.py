"""What breaks RTY-7, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import alter
from spark_checkers.planting import Changes, Trace, defect
from specs.clauses.rows import is_manual
from specs.vocabulary import Outcome


@defect()
def throw_as_success(trace: Trace) -> Changes:
    """The lane goes on after a throw."""
    # The first of two neighbours ends with a throw, and nothing follows from it.
    threw = {"outcome": Outcome.THREW, "suspend_ms": trace.config.suspend_ms}
    for first, second in places.neighbours(trace):
        if not is_manual(first):
            yield alter(first, **threw).about(second)
