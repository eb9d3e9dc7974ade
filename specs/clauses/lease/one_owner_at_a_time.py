"""Nobody is granted a lane while another client's grant lives.

A grant is made somewhere between the request's begin and its answer. It lives until its owner's unlock may have
reached the broker, or until it is strictly older than the broker's limit. So two grants refute only when the later
one was certainly made while the earlier one was alive: the last answer came at most the limit after the first
request began. Which of two requests that overlap was granted first is open, and does not matter. Holds within one
broker epoch: a restart empties the table. An unlock that a fault of its link may have held back may be applied when
that is over, and the second frame of one that came twice within the delay bound of the answer. One from before a
history that begins late may yet be on its way, so that what is found there is at most possible; and so is it where
either of the two has ever given the lane back, and the history would not tell of a fault or a pause that held that up.
Says nothing about listeners that outlive their grant (see one_processor_at_a_time).
"""

from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, UNHINDERED
from specs.clauses.rows import ended_before
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, over_us
from specs.facts.leases import LEASE_COLUMNS, Contests, Grants
from specs.vocabulary import Key, Kind, Party

ID = "LSE-1"
TITLE = "one owner at a time"
STATEMENT = "No two clients hold the lease of one lane at the same time."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
RULES = ("WIR-3",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
LOOKS_BACK = True
NEEDS = frozenset({Kind.LOCK})
COLUMNS = LEASE_COLUMNS


class TwoOwners(Finding):
    first: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each answer to somebody else while a grant lives."""
    contests, client = rows.shared(Contests), rows.lane_client
    findings.at_stake(contests.asked)
    first, second = contests.lease[contests.granted], contests.asked[contests.granted]
    unlocks, now = rows.shared(Grants).unlocks, rows.end[second]
    late = (unlocks.count_before(client[first], now) > 0) | (
        unlocks.count_before(client[second], now) > 0
    )
    told = rows.of_runs(lambda context: context.tells(Kind.FAULT, Kind.PAUSE), second) != 0
    findings.broken(TwoOwners, first=first, second=second, certain=told | ~late)


def explain(found: TwoOwners) -> str:
    first, second = found.first, found.second
    if not ended_before(first, second):
        first, second = sorted((first, second), key=lambda row: row.seq_begin)
        later = ms(second.started_us - first.started_us)
        return (
            f"{second.client_id} asked for {second.lane} at {at(second)}, {later} after "
            f"{first.client_id} had asked at {at(first)}; both were granted it, and neither had given it back"
        )
    age = over_us(second) - first.started_us
    return (
        f"{second.client_id} was granted {second.lane} at {at(second)}, {ms(age)} after {first.client_id} had been "
        f"granted it at {at(first)}; {first.client_id} had not given it back and its grant had not run out"
    )
