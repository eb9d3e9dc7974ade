"""What breaks RTY-11, planted in a history."""

from spark_checkers.changes import alter, by_whom, copy
from spark_checkers.planting import Changes, Trace, defect, grouped, pairs
from specs.clauses.rows import acknowledges, ended_before, is_manual
from specs.vocabulary import Outcome


@defect()
def counted_on(trace: Trace) -> Changes:
    """A new owner counts from where the old one stopped."""
    # The old owner's last call suspends the message with which the new owner begins, as its first retry.
    called = (work.calls for work in trace.works if work.calls)
    for works in grouped(called, lambda calls: calls[0].lane).values():
        for old, new in pairs(sorted(works, key=lambda calls: calls[0].seq_begin)):
            last, first = old[-1], new[0]
            finished = acknowledges(last) and ended_before(last, first) and not is_manual(last)
            follows = last.queue_offset + 1 == first.queue_offset
            if finished and follows and first.reconsume_times == 0:
                result = {"outcome": Outcome.SUSPEND, "suspend_ms": trace.config.suspend_ms}
                yield alter(first, reconsume_times=1) + copy(first, last, **by_whom(last), **result)
