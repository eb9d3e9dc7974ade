"""What breaks RTY-10, planted in a history."""

from spark_checkers.changes import Change, Given, alter
from spark_checkers.planting import CONCURRENT, Pairs, Trace, defect, grouped, lookalike
from specs.clauses.rows import is_copy_topic
from specs.vocabulary import Kind


def copies(trace: Trace) -> Pairs:
    """(a send-back, the first delivery of what came of it), for messages that were sent back once in all."""
    backs = grouped(trace.of(Kind.SEND_BACK), lambda row: (row.group, row.source_id))
    for row in trace.of(Kind.DELIVER):
        mine = backs.get((row.group, row.source_id), [])
        if is_copy_topic(row.topic) and row.attempt == 1 and len(mine) == 1:
            yield mine[0], row


@defect(
    copies,
    where=lambda back, copy: copy.reconsume_times == (back.reconsume_times or 0) + 1,
    **CONCURRENT,
)
def copy_too_soon(back: Given, copy: Given) -> Change:
    """A message that was sent back comes before its level."""
    return alter(back, delay_level=99).about(copy)


@defect(copies, **CONCURRENT)
def copy_miscounted(back: Given, copy: Given) -> Change:
    """A message that was sent back comes with another counter."""
    return alter(copy, reconsume_times=copy.reconsume_times + 99).about(back)


@lookalike(copies, where=lambda back, copy: (back.delay_level or 0) > 0, **CONCURRENT)
def copy_later_than_asked(back: Given, copy: Given) -> Change:
    """A lower level was asked for."""
    return alter(back, delay_level=1).about(copy)
