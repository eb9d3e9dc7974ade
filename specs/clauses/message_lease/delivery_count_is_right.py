"""Each hand-out of a message says how often the message was handed out before, and that is true.

Judged whenever a message is handed out that was handed out before, or that says so; hand-outs that tell no count are
passed over, and where none tells one nothing is known of the limit either. A count *repeats* where it is not higher
than that of a hand-out that was certainly made before, or is that of any other. What may have ended that lease with its
holder's connection, or with the server, may have taken that hand-out back, and excuses it: it is compared with each
that nothing excuses. It *runs ahead*
where it is higher than all hand-outs that the history shows together with all questions that ended without an answer,
of which each may have been one more. That is judged only where everybody is recorded from the begin on, and nobody asks
besides: a question that is still open may stand for many. And a count is *beyond the limit* where the message had been
handed out as often as it may be. Says nothing about a message that comes again after its acknowledgement was answered,
nor about any once one was answered that may be of any message (`specs.facts.message_leases`).
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, CONNECTED, NOT_MOVED
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.message_leases import LEASE_COLUMNS, MessageLeases, may_be_cut
from specs.facts.message_names import may_be_any
from specs.facts.segments import Segments, chosen, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "PML-4"
TITLE = "the delivery count is right and bounded"
STATEMENT = (
    "Each hand-out of a message says how often it was handed out before: never at the first, once more at each "
    "further one; and no message is handed out more often than the limit allows."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (BROKER_LIVES, CONNECTED, NOT_MOVED)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = frozenset({Kind.RECEIVE, Kind.ACK})
NEEDS = frozenset({Kind.RECEIVE})
SETTINGS = ("max_reconsume_times",)
COLUMNS = LEASE_COLUMNS


class CountRepeats(Finding):
    first: Row
    second: Row


class CountRunsAhead(Finding):
    handed: Row


class BeyondTheLimit(Finding):
    handed: Row


def judge(rows: Rows, findings: Findings) -> None:
    """At stake are hand-outs that are not the first of their message, or that tell of one before."""
    handed, nth = _in_turn(rows)
    message, times = rows.shared(MessageLeases).message, rows.number("reconsume_times")
    line = Line(message, rows.end, handed)
    again = (nth > 0) | (times[handed] > 0)
    handed, nth = handed[again], nth[again]
    findings.at_stake(handed)
    told, limit = times[handed], rows.config("max_reconsume_times", handed)
    highest = line.highest_before(message[handed], rows.end[handed], times)
    may_repeat = told <= chosen(times, highest, NONE)
    low, before = handed[may_repeat], np.full(len(handed), NOWHERE, np.int64)

    def is_repeated(index: Ints, other: Ints) -> Mask:
        mine = low[index]
        found: Mask = (times[mine] < times[other]) & (rows.end[other] < rows.begin[mine])
        found |= times[mine] == times[other]
        found[found] = ~may_be_cut(rows, other[found], rows.end[mine[found]])
        return found

    before[may_repeat] = line.last_before_with(message[low], rows.end[low], is_repeated)
    repeats = before != NOWHERE
    beyond = ~repeats & (limit >= 0) & (told > limit)
    ahead = ~repeats & ~beyond & _run_ahead(rows, handed, told - nth)
    findings.told_apart(
        {},
        (CountRepeats, repeats, {"first": before, "second": handed}),
        (BeyondTheLimit, beyond, {"handed": handed}),
        (CountRunsAhead, ahead, {"handed": handed}),
    )


def _in_turn(rows: Rows) -> tuple[Ints, Ints]:
    """Hand-outs by message and answer: where, how many before.

    Left out are those after an acknowledgement that was answered, of their message or, as far as anybody knows, of any.
    """
    leases, times = rows.shared(MessageLeases), rows.number("reconsume_times")
    acks = rows.are(Kind.ACK) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    of_any = Line(
        rows.lane, rows.end, positions(acks & rows.shared(may_be_any) & (rows.group != NO_TEXT))
    )
    handed = leases.handed[times[leases.handed] != NONE]
    message, now = leases.message[handed], rows.end[handed]
    unfinished = leases.acks.count_before(message, now) == 0
    unfinished &= of_any.count_before(rows.lane[handed], now) == 0
    return handed[unfinished], Segments(message[unfinished]).nth()


def _run_ahead(rows: Rows, handed: Ints, unseen: Ints) -> Mask:
    """Does each tell of more unseen hand-outs than answers were lost, while nobody else of the lane asked?"""
    lane, now = rows.lane[handed], rows.end[handed]
    asked, known = rows.are(Kind.RECEIVE), rows.ended_as(Outcome.OK, Outcome.REFUSED)
    begun, ended, lost = (
        Line(rows.lane, moment, positions(some)).count_before(lane, now)
        for moment, some in (
            (rows.begin, asked),
            (rows.end, asked & (rows.end < NEVER)),
            (rows.end, asked & (rows.end < NEVER) & ~known),
        )
    )
    is_alone = begun - ended == (rows.begin[handed] < now)
    found: Mask = rows.closed_world(handed) & ~rows.begins_late(handed) & is_alone & (unseen > lost)
    return found


def explain(found: CountRepeats | CountRunsAhead | BeyondTheLimit) -> str:
    last = found.second if isinstance(found, CountRepeats) else found.handed
    said = (
        f"{who(last)} was handed offset {last.queue_offset} of {last.lane} at {at(last)}, and told that it had been "
        f"handed out {last.reconsume_times} times before"
    )
    if isinstance(found, CountRepeats):
        return f"{said}, though {who(found.first)} had been told {found.first.reconsume_times} at {at(found.first)}"
    if isinstance(found, CountRunsAhead):
        return f"{said}, which is more than there were"
    return f"{said}, which is more than the limit allows"
