"""Nobody is handed a message while another member's lease of it lives.

Judged whenever a message is handed out that somebody else had before: the lease before has to have ended, by its time,
by an acknowledgement or a release, or with its holder. Only two hand-outs refute of which the later one certainly came
in the other's lifetime, by more than a millisecond besides what clocks may be apart, wherever between question and
answer either was made (`specs.facts.message_leases`).

An acknowledgement or a release counts whoever made it, under whatever lease. It may be done until it was answered, or
for `delay_bound_ms` where it was not, also to a lease that began while it was on its way. A renewal counts likewise of
a lease that had begun: that one then lasts no longer than the renewal says. One that was answered prolongs its lease;
where that may have run out before, what was asked for by then may rightly have been handed out meanwhile. What names a
message by its id alone counts for the one that was handed out with it; where that is not certain, for every message of
the lane.

A member that leaves any group may have closed the connection by which it holds what it has. Says nothing about a member
that works on when its lease is over.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, CONNECTED, NO_WALL_CLOCK_STEP, NOT_MOVED
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, over_us, who
from specs.facts.message_leases import LEASE_COLUMNS, OF_LEASES, MessageLeases
from specs.facts.segments import is_first
from specs.vocabulary import Key, Kind, Party

ID = "PML-1"
TITLE = "one holder of a message at a time"
STATEMENT = "No two members of a group hold one message under leases that live at the same time."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, CONNECTED, NOT_MOVED)
SOURCES = ("docs/sources.md#leases-of-messages",)
REFINES = ("PML-2",)
KINDS = OF_LEASES
NEEDS = frozenset({Kind.RECEIVE})
COLUMNS = LEASE_COLUMNS
CONCLUDES_FROM_ABSENCE = True


class TwoHolders(Finding):
    first: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """At stake whenever the message is handed to somebody else than before; told is the last one who has it."""
    first, second = rows.shared(MessageLeases).of_one_message
    of_two = rows.client[first] != rows.client[second]
    first, second = first[of_two], second[of_two]
    again, before = rows.shared(MessageLeases).again()
    passed_on = rows.client[again] != rows.client[before]
    findings.at_stake(again[passed_on | np.isin(again, second)])
    is_last = is_first(second)
    findings.broken(TwoHolders, first=first[is_last], second=second[is_last])


def explain(found: TwoHolders) -> str:
    first, second = sorted((found.first, found.second), key=lambda row: row.seq_begin)
    later = ms(over_us(second) - first.started_us)
    return (
        f"{who(second)} was handed offset {second.queue_offset} of {second.lane} at {at(second)}, at most {later} "
        f"after {who(first)} had been handed it at {at(first)}, whose lease had not ended"
    )
