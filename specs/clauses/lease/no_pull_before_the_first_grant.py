"""A client pulls no message of a lane before it was granted its lease.

Each incarnation needs a grant of its own. It counts when its answer came before the pull began, and when it is the
client's last word with the broker at the ADD (newer than any refusal and than any unlock of its own before the
ADD), or came after the ADD. What happens to the lease later, its loss included, is no matter of this clause. A
refusal is newer only when its request is (a late answer to an older request says nothing), and an error code says
nothing either. What a process was told before it died, or had shut down, is nothing to the next one of its name: where
the rows of its death or shutdown, of the grant and of the ADD name one process, and the shutdown was over when the
client came again. Where they do not, it may be a process that goes on, and nothing is claimed of the incarnation.
Rooted in the ADD: who is seen to pull only was perhaps granted the lane earlier. A shutdown after the ADD excuses
nothing here: who pulls while it shuts down needs a lease as well.
"""

from specs.clauses.premises import ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.columns import NONE, NOWHERE
from specs.facts.leases import LEASE_COLUMNS, LeaseNews, named
from specs.facts.presence import of_old_lives, of_processes_before
from specs.facts.segments import chosen, is_first, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-11"
TITLE = "no pull before the first grant"
STATEMENT = "A client pulls a lane only after it was granted its lease."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY,)
SOURCES = ("docs/sources.md#client-leases",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.ADD, Kind.PULL})
NEEDS = frozenset({Kind.ADD, Kind.LOCK, Kind.PULL})
LOOKS_BACK = True
COLUMNS = (*LEASE_COLUMNS, "incarnation", "process")


class PulledWithoutLease(Finding):
    add: Row
    pull: Row


def judge(rows: Rows, findings: Findings) -> None:
    """The first pull of each incarnation that was seen to begin, beside what its client knew at the ADD."""
    names = rows.names_incarnation & rows.shared(named)
    client, news = rows.lane_client, rows.shared(LeaseNews)
    pull = positions(rows.are(Kind.PULL) & names)
    adds = Line(client, rows.begin, positions(rows.are(Kind.ADD) & names))
    add = adds.last_before(client[pull], rows.begin[pull])
    rooted = (add != NOWHERE) & (rows.incarnation[add] == rows.incarnation[pull])
    add, pull = add[rooted], pull[rooted]
    first = is_first(add)
    add, pull = add[first], pull[first]
    findings.at_stake(pull)
    granted = rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK)
    grant = news.of(granted).last_before(client[pull], rows.begin[pull])
    last = news.line.last_before(client[add], rows.begin[add])
    has_lease = (last != NOWHERE) & granted[last]
    old = positions(last != NOWHERE)
    old = old[of_old_lives(rows, last[old], rows.begin[add[old]])]
    has_lease[old] = ~of_processes_before(rows, last[old], add[old])
    wrong = ~has_lease & (chosen(rows.end, grant, NONE) < rows.begin[add])
    findings.broken(PulledWithoutLease, add=add[wrong], pull=pull[wrong])


def explain(found: PulledWithoutLease) -> str:
    add, pull = found.add, found.pull
    return (
        f"{who(pull)} pulled {pull.lane} from offset {pull.queue_offset} on at {at(pull)}, "
        f"{ms(pull.started_us - add.started_us)} after it had added the lane, and had not been granted its lease"
    )
