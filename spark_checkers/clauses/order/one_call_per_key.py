"""What breaks ORD-11, planted in a history."""

from spark_checkers.changes import alter
from spark_checkers.planting import KEY_ORDERED, Changes, Trace, defect, pairs
from specs.vocabulary import Outcome


@defect(**KEY_ORDERED)
def key_overlaps(trace: Trace) -> Changes:
    """A call of a key begins while another one of it runs."""
    for work in trace.works:
        with_key = (row for row in work.calls if row.sharding_key is not None)
        for before, row in pairs(with_key, lambda row: row.sharding_key):
            if before.outcome is Outcome.SUCCESS:
                later = {"seq_end": row.seq_begin + 1, "ended_us": row.started_us}
                yield alter(before, **later).about(row)
