"""The owner's unlock frees the lane at once, however young or old its lease is.

A special case of LSE-4, and the one that names the culprit: the owner was told that its unlock was done, and the next
one to ask, the owner itself or another one, is refused all the same. Clients give their leases back one way: where
everybody is recorded, such an unlock counts once it must have arrived. That is when the time that a request may take is
over, the client did not crash since, and nothing stood in its way: no fault of its link, and no pause. One that was not
answered, though it should have been, may be lost, and a request since then that was not refused may hold the lane, be
it the asker's own; then nothing is claimed. An unlock of a lease that has run out counts as well: the entry goes, and
says nothing about the next one.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, NO_WALL_CLOCK_STEP, UNHINDERED
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms
from specs.facts.columns import NEVER, NOWHERE
from specs.facts.free_lanes import FreeLanes
from specs.facts.leases import LEASE_COLUMNS
from specs.facts.segments import chosen
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-6"
TITLE = "the owner's unlock frees at once"
STATEMENT = "An unlock by the owner frees the lane at once, whatever the age of its lease."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, NO_FRAME_TWICE, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.LOCK, Kind.UNLOCK})
CONCLUDES_FROM_ABSENCE = True
REFINES = ("LSE-4",)
COLUMNS = LEASE_COLUMNS


class NotFreed(Finding):
    grant: Row
    unlock: Row
    refused: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each answer for a lane that its last owner gave back, and that the asker was not perhaps granted since."""
    lanes = rows.shared(FreeLanes)
    unlock = np.where(lanes.own | lanes.released, lanes.arrived, NOWHERE)
    freed = (unlock != NOWHERE) & ~lanes.may_be_askers(chosen(rows.started, unlock, NEVER))
    findings.at_stake(lanes.asked[freed])
    wrong = freed & ~lanes.granted
    findings.broken(
        NotFreed, grant=lanes.grant[wrong], unlock=unlock[wrong], refused=lanes.asked[wrong]
    )


def explain(found: NotFreed) -> str:
    grant, unlock, refused = found.grant, found.unlock, found.refused
    later = ms(refused.started_us - unlock.started_us)
    told = "and was told so" if unlock.outcome is Outcome.OK else "one way, with nothing in its way"
    return (
        f"{refused.client_id} was refused {refused.lane} at {at(refused)}, {later} after {unlock.client_id}, who was "
        f"granted it at {at(grant)}, had begun to give it back, {told}"
    )
