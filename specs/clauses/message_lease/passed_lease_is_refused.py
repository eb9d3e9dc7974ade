"""What is asked under a lease that has passed to another hand-out is refused.

Judged when an acknowledgement, a release or a renewal ends that named the lease of any earlier hand-out, was begun
after the message had been handed out anew, and was answered; as long as the new lease certainly lives and its holder
has not settled the message: what was finished meanwhile may be acknowledged once more. Says nothing of requests that
nobody answers, nor of ones under a lease that ran out while nobody else was handed the message.
"""

from specs.clauses.premises import BROKER_LIVES, CONNECTED, NO_WALL_CLOCK_STEP, NOT_MOVED
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import NO_TEXT, NONE, NOWHERE
from specs.facts.message_leases import LEASE_COLUMNS, OF_LEASES, MessageLeases
from specs.facts.segments import chosen, dense, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "PML-3"
TITLE = "a lease that has passed on is refused"
STATEMENT = (
    "An acknowledgement, a release or a renewal under a lease of a message that has passed to another hand-out is "
    "refused."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, CONNECTED, NOT_MOVED)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = OF_LEASES
NEEDS = frozenset({Kind.RECEIVE, Kind.ACK})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = LEASE_COLUMNS


class LateOneTaken(Finding):
    """first: the lease that passed on. second: the one that lives. late: the request under the first."""

    first: Row
    second: Row
    late: Row


def judge(rows: Rows, findings: Findings) -> None:
    """At stake is each request under a lease before the last one, while that lives.

    What such a request may have done to the last lease counts from its answer on.
    """
    leases, begin, end = rows.shared(MessageLeases), rows.begin, rows.end
    of, lease = leases.message, rows.text("lease_id")
    late = positions(~rows.are(Kind.RECEIVE) & (of != NOWHERE) & (lease != NO_TEXT))
    second = leases.line.last_before(of[late], begin[late])
    of_lease = dense(of, lease)[0]
    line = Line(of_lease, end, leases.handed)
    first = line.last_before(of_lease[late], chosen(begin, second, NONE))
    passed = (first != NOWHERE) & (lease[second] != lease[late])
    first, second, late = first[passed], second[passed], late[passed]
    finished = leases.acks.count_before
    passed = finished(of[late], end[first]) == finished(of[late], end[second])
    first, second, late = first[passed], second[passed], late[passed]
    counts_from = begin.copy()
    counts_from[late] = end[late]
    leases = MessageLeases(rows, counts_from)
    answered = rows.ended_as(Outcome.OK, Outcome.REFUSED)[late]
    answered &= end[late] < rows.clock_stepped(late)
    answered &= leases.line.last_before(of[late], end[late]) == second
    first, second, late = first[answered], second[answered], late[answered]
    lives = leases.live(second, late, end[late])
    findings.at_stake(late[lives])
    taken = lives & rows.ended_as(Outcome.OK)[late]
    findings.broken(LateOneTaken, first=first[taken], second=second[taken], late=late[taken])


def explain(found: LateOneTaken) -> str:
    first, second, late = found.first, found.second, found.late
    return (
        f"{who(late)} asked to {late.kind.value} offset {first.queue_offset} of {late.lane} at {at(late)} under the "
        f"lease of {at(first)}, and it was accepted, though {who(second)} had been handed the message at {at(second)} "
        f"and held it still"
    )
