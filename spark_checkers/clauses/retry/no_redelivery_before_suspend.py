"""What breaks RTY-1, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MS, alter
from spark_checkers.planting import Changes, Trace, defect, lookalike


@defect()
def early_redelivery(trace: Trace) -> Changes:
    """A suspended message comes again too early."""
    for before, row in places.redelivered(trace):
        waited_ms = (row.started_us - before.ended_us) // MS
        if waited_ms < 29_000:
            yield alter(before, suspend_ms=max(10, waited_ms + 50)).about(row)


@lookalike()
def short_suspend(trace: Trace) -> Changes:
    """A suspend of 3 ms means 10 ms."""
    # What comes later may be too late for 10 ms.
    soon_us = min(trace.config.suspend_ms, trace.config.schedule_slack_ms) * MS
    for before, row in places.redelivered(trace):
        if 11 * MS < row.started_us - before.ended_us <= soon_us:
            yield alter(before, suspend_ms=3)
