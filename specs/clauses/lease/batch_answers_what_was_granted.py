"""A lock request for several lanes is answered with success, and with exactly the lanes that were granted.

Neither all or nothing nor what was asked for: an empty answer is a success as well. Asked on the wire, where the
whole request and the whole answer are seen and nobody else asks meanwhile; which lanes must be granted and which
must not is decided by the abstract lock table. A history of clients at work shows the same bugs, one lane at a time,
as LSE-1 and LSE-4.
"""

from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP
from specs.vocabulary import Party

ID = "LSE-9"
TITLE = "a batch answers what was granted"
STATEMENT = "A lock request for several lanes is answered with success and exactly the lanes that were granted."
PARTY = Party.BROKER
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES)
SOURCES = ("docs/sources.md#lock-table",)
RULES = ("WIR-1", "WIR-23")
