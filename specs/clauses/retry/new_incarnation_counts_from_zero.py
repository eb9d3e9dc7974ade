"""When a lane is assigned anew, to the same client or another, its messages count their retries from 0 again.

The counter of an original message lives in the client's memory of one incarnation. So the first delivery of a
message by an incarnation that was watched from its add carries 0, however often another incarnation had delivered
it. At stake where another incarnation had suspended the message before. Which delivery is the first of its message is
asked for each message, not for the lane: keys go side by side. A copy in a retry topic carries its own counter. Says
nothing once the lane was reset.
"""

import numpy as np

from specs.clauses.premises import IN_PLACE, NO_RESET
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.calls import puts_back
from specs.facts.columns import NONE, NOWHERE
from specs.facts.segments import chosen, dense, is_first, positions
from specs.facts.stored import copies
from specs.facts.tenures import Tenures
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Party

ID = "RTY-11"
TITLE = "a lane assigned anew counts from 0"
STATEMENT = "A message that another incarnation had retried counts from 0 when its lane is dropped and assigned anew."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
REFINES = ("RTY-3",)
STAKES = (Stake(Trait.LONG_REST),)
KINDS = frozenset({Kind.DELIVER, Kind.ADD, Kind.RESET})
NEEDS = frozenset({Kind.ADD, Kind.DELIVER})
COLUMNS = ("client_id", "commit_mode", "incarnation", "outcome", "queue_offset", "reconsume_times")


class CountedOn(Finding):
    """before: a suspended delivery by another incarnation. add: where this one began."""

    before: Row
    add: Row
    first: Row


def judge(rows: Rows, findings: Findings) -> None:
    """The first delivery of each message in a tenure, beside the last one of anybody that had put it back."""
    tenures, times = rows.shared(Tenures), rows.number("reconsume_times")
    calls = positions(rows.are(Kind.DELIVER) & tenures.named & (rows.offset >= 0) & ~copies(rows))
    back = calls[puts_back(rows)[calls]]
    calls = calls[np.isin(rows.offset[calls], rows.offset[back])]
    first = calls[is_first(tenures.number[calls], rows.offset[calls])]
    message = np.full(rows.size, NOWHERE, np.int64)
    message[calls] = dense(rows.lane[calls], rows.offset[calls])[0]
    before = Line(message, rows.end, back).last_before(message[first], rows.begin[first])
    add, reset = tenures.add[first], chosen(rows.begin, tenures.reset[first], NONE)
    counts = (before != NOWHERE) & (add != NOWHERE) & (times[first] != NONE)
    counts &= (rows.end[before] > reset) & (rows.begin[add] > reset)
    findings.at_stake(first[counts])
    wrong = counts & (times[first] != 0)
    findings.broken(CountedOn, before=before[wrong], add=add[wrong], first=first[wrong])


def explain(found: CountedOn) -> str:
    before, first = found.before, found.first
    return (
        f"{who(first)} delivered offset {first.queue_offset} of {first.lane} at {at(first)} as retry "
        f"{first.reconsume_times}, for the first time since it added the lane at {at(found.add)}; that "
        f"{who(before)} had tried it before, as retry {before.reconsume_times}, does not count"
    )
