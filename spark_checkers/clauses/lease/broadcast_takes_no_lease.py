"""What breaks LSE-12, planted in a history."""

from typing import Any

from spark_checkers import places
from spark_checkers.changes import STRANGER, Change, Given, by, insert
from spark_checkers.planting import BROADCASTING, defect, lookalike
from specs.vocabulary import Kind, Outcome


def asked_for(add: Given, **who: Any) -> Change:
    asked = {"incarnation": None, "outcome": Outcome.REFUSED}
    return insert(Kind.LOCK, add, add, **asked, **who).about(add)


@defect(places.each(Kind.ADD), **BROADCASTING)
def lease_in_broadcasting(add: Given) -> Change:
    """A broadcast client asks for a lease."""
    return asked_for(add)


@lookalike(places.each(Kind.ADD), **BROADCASTING)
def stranger_leases_in_broadcasting(add: Given) -> Change:
    """A stranger asks for a lease."""
    return asked_for(add, **by(STRANGER))
