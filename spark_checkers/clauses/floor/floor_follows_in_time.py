"""What breaks FLR-2, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MS, Change, Given, floor_told
from spark_checkers.planting import LEASED, Pairs, Trace, defect, lookalike
from specs.vocabulary import Kind, Outcome


def long_before(trace: Trace) -> Pairs:
    """An answered acknowledgement, and a row that begins so long after it that the floor must have followed."""
    for ack in trace.of(Kind.ACK):
        if ack.outcome is Outcome.OK and ack.ended_us is not None:
            after = places.later(trace, ack, 2 * trace.config.schedule_slack_ms * MS)
            if after is not None and after.ended_us is not None:
                yield ack, after


@defect(long_before, **LEASED)
def floor_stays(ack: Given, after: Given) -> Change:
    """The store tells a floor that was passed long before."""
    return floor_told(ack.queue_offset, ack, after)


@lookalike(long_before, **LEASED)
def floor_follows_at_once(ack: Given, after: Given) -> Change:
    """The store tells a floor that has just been passed."""
    return floor_told(ack.queue_offset, ack, ack)
