"""What breaks DLQ-6, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter
from spark_checkers.planting import defect
from specs.vocabulary import Outcome


@defect(places.given_up)
def failed_letter_skipped(last: Given, letter: Given, after: Given) -> Change:
    """A dead letter is refused, the lane goes on."""
    return alter(letter, outcome=Outcome.REFUSED, code=1).about(after)
