"""A refused request leaves the owner's lease as it was: it makes it neither longer nor shorter.

A special case of LSE-1, LSE-4 and LSE-14, and the one that names the culprit: somebody is refused an owned lane, and
after that the lease lives on though it has run out (the last such refusal is at most the limit ago, so that it may
have prolonged it), or somebody is granted the lane though the lease still lives. The same certainty as in those
clauses is asked for, also of the refusal: the lease lived when it was answered. A refusal that comes when the lease
may have run out is no culprit, and neither is any once the owner has begun to give the lane back, whatever that was
answered: a lane that is not free then is a matter of LSE-4 or LSE-6. What the owner itself is answered is no refusal
of a stranger, and does not count.
"""

from specs.clauses import rows as of_row
from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, NO_WALL_CLOCK_STEP, UNHINDERED
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms
from specs.facts.columns import NONE, NOWHERE
from specs.facts.free_lanes import FreeLanes
from specs.facts.leases import LEASE_COLUMNS, Contests, Grants, over_us, refusals
from specs.facts.segments import chosen, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-7"
TITLE = "a refusal changes nothing"
STATEMENT = "A refused request for a lane changes nothing about its owner's lease."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, NO_FRAME_TWICE, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.LOCK})
CONCLUDES_FROM_ABSENCE = True
REFINES = ("LSE-1", "LSE-4", "LSE-14")
COLUMNS = LEASE_COLUMNS


class Changed(Finding):
    """asked: after the refusal, by somebody else than the owner; granted too early, or refused too late."""

    lease: Row
    refusal: Row
    asked: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each answer to somebody else after a refusal that met the same lease: while it lives, and when it is over."""
    contests, lanes, begin, end = (
        rows.shared(Contests),
        rows.shared(FreeLanes),
        rows.begin,
        rows.end,
    )
    lease, asked, refused = contests.lease, contests.asked, rows.shared(refusals)
    met = Line(lease, end[asked], positions(refused[asked] & (end[lease] < begin[asked])))
    refusal = chosen(asked, met.last_before(lease, begin[asked]), NOWHERE)
    judged = (refusal != NOWHERE) & (contests.granted | refused[asked])
    findings.at_stake(asked[judged])
    wrong = judged & contests.granted
    findings.broken(Changed, lease=lease[wrong], refusal=refusal[wrong], asked=asked[wrong])

    over, later = lanes.grant, lanes.asked
    refusal = chosen(asked, met.last_before(over, begin[later]), NOWHERE)
    owner = chosen(rows.lane_client, over, NOWHERE)
    unlock = rows.shared(Grants).unlocks.last_before(owner, lanes.now)
    judged = lanes.expired & (refusal != NOWHERE) & (chosen(begin, unlock, NONE) < end[over])
    since_us = rows.started[later] - over_us(rows, refusal) + lanes.clocks_us
    judged &= since_us < lanes.limit_us
    findings.at_stake(later[judged])
    wrong = judged & ~lanes.granted
    findings.broken(Changed, lease=over[wrong], refusal=refusal[wrong], asked=later[wrong])


def explain(found: Changed) -> str:
    lease, refusal, asked = found.lease, found.refusal, found.asked
    granted = asked.outcome is Outcome.OK
    begun = lease.started_us if granted else of_row.over_us(lease)
    until = of_row.over_us(asked) if granted else asked.started_us
    age = ms(until - begun)
    return (
        f"{asked.client_id} was {'granted' if granted else 'refused'} {asked.lane} at {at(asked)}, when "
        f"{lease.client_id}'s lease was {age} old and {'still alive' if granted else 'over'}: the refusal of "
        f"{refusal.client_id} at {at(refusal)} had changed it"
    )
