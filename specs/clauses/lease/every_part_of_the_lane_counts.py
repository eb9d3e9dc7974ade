"""Group, topic, broker name and queue are all part of what a lease is for.

Two lanes that differ in one of them never conflict: each is granted while another client holds the other one, and
giving one back frees nothing else. Asked on the wire, by two clients and nobody else, so that a refusal can have no
other cause; a broker takes the broker's name from the request, and so may be asked about another one. In a history
the lanes are judged one by one, and a lane that another one blocks looks like one that is not free (LSE-4).
"""

from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP
from specs.vocabulary import Party

ID = "LSE-10"
TITLE = "every part of the lane counts"
STATEMENT = "Lanes that differ in group, topic, broker or queue never share a lease."
PARTY = Party.BROKER
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES)
SOURCES = ("docs/sources.md#lock-table",)
RULES = ("WIR-24",)
