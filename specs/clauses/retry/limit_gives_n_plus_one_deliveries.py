"""With a limit of N retries a message is delivered N + 1 times in an incarnation, and is then given up.

(a) After a delivery that carried N (or more) and was suspended, the message does not come again, at once or later,
unless its dead letter failed (one that names no incarnation may be of this one). Where a call held several messages
this is claimed once all of them carried N or more: as long as one of them may be tried again, or its dead letter
failed, the batch comes again as a whole. (b) No message is given up whose last delivery carried less than N. N = 0
means one delivery; no limit (-1) says nothing. The premises are those of RTY-3.
"""

import numpy as np

from specs.clauses.premises import DEAD_LETTER_SENT, NO_ROLLBACK, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, may_put_back_unseen_of
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import chosen, positions
from specs.facts.tries import Tries
from specs.vocabulary import Key, Kind, Party

ID = "RTY-5"
TITLE = "a limit of N gives N + 1 deliveries"
STATEMENT = "With a limit of N retries, a message that never succeeds is delivered N + 1 times and then given up."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_ROLLBACK, DEAD_LETTER_SENT)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#dead-letters")
KINDS = CALL_KINDS
SETTINGS = ("batch", "max_reconsume_times")
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL})
COLUMNS = CALL_COLUMNS
LOOKS_BACK = True


class LimitMissed(Finding):
    """next: the delivery that came too much, or the dead letter that came too soon. call: what shows that the call is
    there as a whole, where a history may lack some of it."""

    last: Row
    next: Row
    limit: int
    call: tuple[Row, ...] = ()


def judge(rows: Rows, findings: Findings) -> None:
    """Dead letters beside the tries before them, then deliveries after a call that had tried all it could."""
    tries, times = rows.shared(Tries), rows.number("reconsume_times")
    letters = tries.letters[tries.limit[tries.letters] >= 0]
    last, began = tries.before[letters], rows.begin[letters]
    told = (times[last] != NONE) & ~tries.failed_to_be_given_up(last, began)
    told &= (began < tries.counted_until[letters]) & ~may_put_back_unseen_of(rows)[last]
    findings.at_stake(letters[told])
    soon = told & (times[last] < tries.limit[last])
    _missed(rows, tries, last[soon], letters[soon], findings)

    over = tries.all_exhausted()
    findings.at_stake(_last_tries(rows, tries, over))
    at, last = tries.at, tries.before[tries.at]
    broken = (last != NOWHERE) & over[last] & (rows.end[last] < rows.begin[at])
    broken &= rows.begin[at] < tries.counted_until[at]
    broken &= ~tries.call_failed_to_be_given_up(last, rows.begin[at])
    _missed(rows, tries, last[broken], at[broken], findings, call_counts=True)


def _last_tries(rows: Rows, tries: Tries, over: Mask) -> Ints:
    """Those of such a call that had ended before the stand was moved, or its message was tried again."""
    spent = positions(over & (rows.end < np.minimum(tries.counted_until, NEVER)))
    spent = spent[np.isin(spent, tries.at) & tries.calls.tenures.stands_until_end(spent)]
    message = tries.calls.message
    again = Line(message, rows.begin, tries.at).first_after(message[spent], rows.begin[spent])
    still = chosen(rows.begin, again, NEVER) > rows.end[spent]
    found: Ints = spent[still | (tries.call[again] == tries.call[spent])]
    return found


def _missed(
    rows: Rows,
    tries: Tries,
    last: Ints,
    after: Ints,
    findings: Findings,
    *,
    call_counts: bool = False,
) -> None:
    """call_counts: the evidence holds what shows that the call is there as a whole."""
    for each, then in zip(last.tolist(), after.tolist(), strict=True):
        call: list[int] = []
        config = rows.config_of(each)
        if call_counts and not rows.context_of(each).info.closed_world and config.batch != 1:
            mine = tries.calls.at[tries.calls.number == tries.call[each]].tolist()
            add = int(tries.calls.tenures.add[each])
            call = mine if len(mine) >= config.batch else [add, *mine]
        roles = {"last": each, "next": then, "call": call}
        findings.shown(LimitMissed, roles, {"limit": config.max_reconsume_times})


def explain(found: LimitMissed) -> str:
    last, after, limit = found.last, found.next, found.limit
    if after.kind is Kind.DEAD_LETTER:
        return (
            f"{who(after)} gave up offset {after.queue_offset} of {after.lane} at {at(after)} after retry "
            f"{last.reconsume_times}; the limit is {limit} retries"
        )
    return (
        f"{who(after)} delivered offset {after.queue_offset} of {after.lane} once more at {at(after)}, after retry "
        f"{last.reconsume_times} had ended {last.outcome}; the limit is {limit} retries"
    )
