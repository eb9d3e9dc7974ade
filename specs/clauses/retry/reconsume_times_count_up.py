"""The retry counter of a message goes 0, 1, 2 … within an incarnation.

The first delivery of an incarnation that was watched from its add carries 0, and each delivery after a suspension
carries one more than the one before, whatever was delivered in between. Each message of a call is counted by itself;
but one whose retries were used up, and which comes again only because others of its batch do, may carry the same count
once more. Only for messages of an original topic (copies, of messages to retry and of messages given up, carry counters
of their own), no manual ROLLBACK (it replays without counting) and no failed dead letter in between (it counts as
well). A call of which nobody saw the result, nor says that it was in auto mode, may have been a manual ROLLBACK, unless
the lane goes on beyond it. A lane dropped and added again counts from 0 again: that is another incarnation. So is what
a client does after it has left and come again, or died, whatever name the incarnation has then.
"""

import numpy as np

from specs.clauses.premises import DEAD_LETTER_SENT, NO_ROLLBACK, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS
from specs.facts.columns import NONE, NOWHERE
from specs.facts.tries import Tries
from specs.vocabulary import Key, Kind, Party

ID = "RTY-3"
TITLE = "reconsume times count up"
STATEMENT = "Within an incarnation, the reconsume times of a message count up from 0, one by one."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_ROLLBACK, DEAD_LETTER_SENT)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = CALL_KINDS
SETTINGS = ("batch", "max_reconsume_times")
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL})
COLUMNS = CALL_COLUMNS
LOOKS_BACK = True


class Miscounted(Finding):
    """before: the delivery that it repeats, or the add that it is the first delivery after."""

    before: Row
    again: Row
    expected: int


def judge(rows: Rows, findings: Findings) -> None:
    """First deliveries beside the add of their tenure, then each delivery beside the try before it."""
    tries = rows.shared(Tries)
    tenures, times = tries.calls.tenures, rows.number("reconsume_times")
    at, message = tries.at[times[tries.at] != NONE], tenures.message
    wrong = at[(times[at] != 0) & tenures.unmoved[at]]
    known = Line(message, rows.begin, tries.at).last_before(message[wrong], rows.begin[wrong])
    wrong = wrong[known == NOWHERE]
    findings.at_stake(wrong)
    findings.broken(Miscounted, {"expected": 0}, before=tenures.add[wrong], again=wrong)

    at = at[(tries.before[at] != NOWHERE) & (rows.begin[at] < tries.counted_until[at])]
    last = tries.before[at]
    follows = (times[last] != NONE) & (rows.end[last] < rows.begin[at])
    follows &= ~tries.failed_to_be_given_up(last, rows.begin[at])
    more = times[at] - times[last]
    # One that was tried for the last time may come again because of others, uncounted.
    size = np.bincount(tries.calls.number, minlength=len(tries.calls.first))[tries.call[last]]
    of_others = ((size > 1) | ~tries.is_whole(begun=True)[last]) & tries.exhausted[last]
    stakes = follows & ~(of_others & (more >= 0) & (more <= 1))
    findings.at_stake(at[stakes])
    broken = stakes & (more != 1)
    expected = times[last[broken]] + 1
    findings.broken(Miscounted, {"expected": expected}, before=last[broken], again=at[broken])


def explain(found: Miscounted) -> str:
    before, again = found.before, found.again
    said = f"{who(again)} delivered offset {again.queue_offset} of {again.lane} at {at(again)} as retry"
    if before.kind is Kind.ADD:
        return f"{said} {again.reconsume_times}, for the first time since it added the lane at {at(before)}: 0 is right"
    return (
        f"{said} {again.reconsume_times}; the delivery before, at {at(before)}, was retry {before.reconsume_times} and "
        f"ended {before.outcome}, so {found.expected} is right"
    )
