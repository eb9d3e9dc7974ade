"""What breaks DLQ-7, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MS, alter
from spark_checkers.planting import DEAD_LETTERS, Changes, Trace, defect


@defect(**DEAD_LETTERS)
def slow_dead_letter(trace: Trace) -> Changes:
    """A dead letter was stored late."""
    late_us = (trace.config.dead_letter_bound_ms + 5_000) * MS
    for _, row in places.dead_reads(trace):
        if row.wall_us is not None:
            yield alter(row, wall_us=row.wall_us + late_us)
