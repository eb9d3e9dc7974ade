"""An incarnation never delivers below the offset that it fetched at its start.

The start is the value of the ADD, or, where none was seen before, that of a look-up of the stored offset that names the
incarnation. A look-up that the incarnation makes afterwards sets it anew while nothing has been delivered, and later
only lowers it: who looks up again may go back that far. One that began before the ADD is of what was there before, and
sets no start. An answer that nothing is stored leaves the start to the client, and the clause stays silent then. Two
things may take a client below its start: a reset by an operator, and a broker's word that the offset is out of range (a
commit marked `corrected`, or a pull whose answer names a lower offset than was asked for, from its begin on; one that
names no incarnation speaks for its client). An incarnation that met one of them, whether or not its start was known, is
judged no more, until it is added anew; one that was added while an operator's request was under way met it, too.
"""

import numpy as np

from specs.clauses.premises import NO_RESET
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import Segments, chosen, dense, first_of_each, positions
from specs.facts.tenures import TENURE_COLUMNS, TENURE_KINDS, Tenures
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-5"
TITLE = "nothing below the start"
STATEMENT = (
    "An incarnation never delivers below the offset that it fetched at its start, save a broker's correction or a "
    "reset."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (NO_RESET,)
SOURCES = ("docs/sources.md#start-matrix", "docs/sources.md#offsets")
KINDS = TENURE_KINDS | {Kind.DELIVER, Kind.FETCH_OFFSET, Kind.COMMIT}
NEEDS = frozenset({Kind.ADD, Kind.DELIVER})
LOOKS_BACK = True
TOLD_OF_REFUSED_COMMITS = True
COLUMNS = (*TENURE_COLUMNS, "detail")


class BelowTheStart(Finding):
    start: Row
    delivered: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each delivery, beside the lowest start that its tenure was given since one was last set anew."""
    tenures = rows.shared(Tenures)
    tenure, calls = tenures.number, tenures.named & rows.are(Kind.DELIVER)
    looked = tenures.named & rows.are(Kind.FETCH_OFFSET) & (rows.end < NEVER)
    told = looked & rows.ended_as(Outcome.OK) & (rows.value >= 0)
    told |= looked & rows.ended_as(Outcome.REFUSED) & (rows.value == -1)
    says = told | (tenures.named & rows.are(Kind.ADD))
    moment, tells = np.where(looked, rows.end, rows.begin), positions(says)
    goes_on = Line(tenure, rows.begin, positions(calls)).last_before(tenure[tells], moment[tells])
    sets = Line(tenure, moment, tells[goes_on == NOWHERE])
    start = sets.last_before(tenure, moment + 1)
    known = (says | (calls & (rows.offset != NONE))) & (start != NOWHERE)
    where = positions(known & ~_was_led_elsewhere(rows, tenures))
    where = where[np.argsort(moment[where], kind="stable")]
    # Nothing is lower than that nobody knows.
    lowest = np.where(says, np.maximum(rows.value, -1), NEVER)[where]
    start = chosen(where, Segments(start[where]).highest_before(-lowest), NOWHERE)
    judged = calls[where] & (chosen(rows.value, start, NONE) >= 0)
    start, delivered = start[judged], where[judged]
    findings.at_stake(delivered)
    below = rows.offset[delivered] < rows.value[start]
    findings.broken(BelowTheStart, start=start[below], delivered=delivered[below])


def _was_led_elsewhere(rows: Rows, tenures: Tenures) -> Mask:
    """Of each row: had its tenure met an operator's reset or a broker's correction since it began?"""
    tenure, count = dense(tenures.number)
    since = rows.begin[first_of_each(tenure, count)[tenure]]
    clients = rows.lane_client
    back = rows.are(Kind.PULL) & (rows.value != NONE) & (rows.value < rows.offset)
    back |= rows.are(Kind.COMMIT) & rows.corrected
    own, by_client = positions(back & tenures.named), positions(back & ~tenures.named)

    def met(key: Ints, where: Ints) -> Mask:
        line = Line(key, rows.begin, where)
        found: Mask = line.count_before(key, rows.begin) > line.count_before(key, since)
        return found

    return tenures.met_a_reset | met(tenure, own) | met(clients, by_client)


def explain(found: BelowTheStart) -> str:
    start, delivered = found.start, found.delivered
    return (
        f"{who(delivered)} delivered offset {delivered.queue_offset} of {delivered.lane} at {at(delivered)}, although "
        f"it had begun the lane at {start.value} (seen at {at(start)})"
    )
