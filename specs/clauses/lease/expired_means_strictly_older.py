"""A lease has run out when it is strictly older than the broker's limit: not a millisecond sooner, and then at once.

A special case of LSE-1 and of LSE-4, at the end of a lease's life. Too early: somebody else is granted the lane in
the last `EDGE_MS` of the owner's lease, and the answer came at most the limit after the owner had asked (exactly
as old is still alive). Too late: somebody else is refused, although the owner's answer is more than the limit ago,
in whole milliseconds of the broker's clock. Certain, as in those two: a lease is made somewhere between its
request and the answer, nobody else's request may hold the lane, and the broker did not crash. It is not too early
once the owner has begun to give the lane back, and not old but released where that was answered, or was sent one way
and must have arrived by now (a refusal is for LSE-4 then): any other unlock without an answer frees nothing for
certain, and the lease ends in its time. The client's half of the boundary is LSE-3.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, NO_WALL_CLOCK_STEP, UNHINDERED
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, over_us
from specs.facts.columns import MS
from specs.facts.free_lanes import FreeLanes
from specs.facts.leases import LEASE_COLUMNS, Contests, refusals
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-14"
TITLE = "expired means strictly older than the limit"
STATEMENT = (
    "A lease lives until it is strictly older than the broker's limit, and not a moment longer."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, NO_FRAME_TWICE, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.LOCK})
CONCLUDES_FROM_ABSENCE = True
REFINES = ("LSE-1", "LSE-4")
COLUMNS = LEASE_COLUMNS

EDGE_MS = 10
"""A grant of an owned lane this short before the end of the lease is a matter of its limit, and not of ownership."""


class WrongEnd(Finding):
    """asked: by somebody else; granted too early, or refused too late."""

    lease: Row
    asked: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each answer to somebody else in the last moments of a lease, and each one for a lane whose lease is over."""
    contests, lanes = rows.shared(Contests), rows.shared(FreeLanes)
    lease, asked, granted = contests.lease, contests.asked, contests.granted
    edge_us = (rows.config("broker_lease_ms", lease) - EDGE_MS) * MS
    at_end = (granted | rows.shared(refusals)[asked]) & (rows.end[lease] < rows.begin[asked])
    at_end &= rows.started[asked] - rows.ended[lease] >= edge_us
    over, refused = lanes.expired, lanes.expired & ~lanes.granted
    findings.at_stake(np.concatenate([asked[at_end], lanes.asked[over]]))
    findings.broken(WrongEnd, lease=lease[at_end & granted], asked=asked[at_end & granted])
    findings.broken(WrongEnd, lease=lanes.grant[refused], asked=lanes.asked[refused])


def explain(found: WrongEnd) -> str:
    lease, asked = found.lease, found.asked
    granted = asked.outcome is Outcome.OK
    begun = lease.started_us if granted else over_us(lease)
    until = over_us(asked) if granted else asked.started_us
    age = f"at {'most' if granted else 'least'} {ms(until - begun)} old"
    was = f"{asked.client_id} was {'granted' if granted else 'refused'} {asked.lane} at {at(asked)}"
    return f"{was}, when {lease.client_id}'s lease was {age}"
