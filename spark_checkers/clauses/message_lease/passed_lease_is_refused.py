"""What breaks PML-3, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, copy
from spark_checkers.planting import LEASED, defect, lookalike
from specs.vocabulary import Kind, Outcome


def late_request(before: Given, row: Given, outcome: Outcome) -> Change:
    """An acknowledgement under the hand-out before, right after the message was handed out anew."""
    bare = {"lease_until_us": None, "reconsume_times": None}
    return copy(before, row, kind=Kind.ACK, outcome=outcome, **bare).about(before, row)


@defect(places.passed_on, **LEASED)
def late_acknowledgement_taken(before: Given, row: Given) -> Change:
    """An acknowledgement is accepted under a lease that has passed on."""
    return late_request(before, row, Outcome.OK)


@lookalike(places.passed_on, **LEASED)
def late_acknowledgement_refused(before: Given, row: Given) -> Change:
    """An acknowledgement under a lease that has passed on is refused."""
    return late_request(before, row, Outcome.REFUSED)
