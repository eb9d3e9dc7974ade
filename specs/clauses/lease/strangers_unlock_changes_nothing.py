"""An unlock by a client that does not own the lane changes nothing.

A special case of LSE-1, and the one that names the culprit: while a grant certainly lives, somebody else sends an
unlock, and after it a third request (by anyone but the owner) is granted. The same certainty as in LSE-1 is asked
for. The stranger's unlock may be unanswered: if it does nothing, it does not matter whether it arrived.
"""

from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, UNHINDERED
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, over_us
from specs.facts.columns import NONE
from specs.facts.leases import LEASE_COLUMNS, Contests, named
from specs.facts.segments import chosen, positions
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Party

ID = "LSE-8"
TITLE = "a stranger's unlock changes nothing"
STATEMENT = "An unlock by a client that does not own the lane changes nothing."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
STAKES = (Stake(Trait.STRANGER),)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.LOCK, Kind.UNLOCK})
EXCUSED_BY = frozenset({Kind.FAULT})
REFINES = ("LSE-1",)
COLUMNS = LEASE_COLUMNS


class FreedByStranger(Finding):
    grant: Row
    unlock: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each answer to somebody else while a grant lives, after the last unlock by a stranger."""
    contests, begin = rows.shared(Contests), rows.begin
    lease, asked = contests.lease, contests.asked
    unlocks = Line(rows.lane, begin, positions(rows.are(Kind.UNLOCK) & rows.shared(named)))
    unlock = unlocks.last_before_with(
        rows.lane[lease],
        begin[asked],
        lambda index, unlock: rows.client[unlock] != rows.client[lease[index]],
    )
    after = chosen(begin, unlock, NONE) > rows.end[lease]
    findings.at_stake(asked[after])
    freed = after & contests.granted
    findings.broken(FreedByStranger, grant=lease[freed], unlock=unlock[freed], second=asked[freed])


def explain(found: FreedByStranger) -> str:
    grant, unlock, second = found.grant, found.unlock, found.second
    age = over_us(second) - grant.started_us
    return (
        f"{second.client_id} was granted {second.lane} at {at(second)}, {ms(age)} after {grant.client_id} had been "
        f"granted it at {at(grant)}: the unlock that {unlock.client_id}, a stranger, sent at {at(unlock)} had freed it"
    )
