"""Each hand-out of a message says how often the message was handed out before, and that is true.

Judged whenever a message is handed out that was handed out before, or that says so. A count *repeats* where it is not
higher than that of a hand-out that was certainly made before, or is that of any other; what may have ended that lease
with its holder's connection, or with the server, may have taken the hand-out back, and excuses it. It *runs ahead*
where it is higher than all hand-outs that the history shows together with all questions that ended without an answer,
of which each may have been one more. That is judged only where everybody is recorded from the begin on, and nobody asks
besides: a question that is still open may stand for many. And a count is *beyond the limit* where the message had been
handed out as often as it may be. Says nothing about a message that comes again after its acknowledgement was answered,
nor about any once one was answered that may be of any message (`specs.facts.message_leases`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, CONNECTED, NOT_MOVED
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.message_leases import LEASE_COLUMNS, may_be_cut, requests
from specs.facts.message_names import may_be_any, offsets
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Ints, by_time, dense, positions
from specs.history.row import Row
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


@dataclass(frozen=True, slots=True)
class CountRepeats(Finding):
    first: Row
    second: Row


@dataclass(frozen=True, slots=True)
class CountRunsAhead(Finding):
    handed: Row


@dataclass(frozen=True, slots=True)
class BeyondTheLimit(Finding):
    handed: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Only hand-outs that are not the first of their message, or that tell of one before, are looked at singly."""
    handed, before, nth = _in_turn(rows)
    told_at = rows.number("reconsume_times")
    again = (before != NOWHERE) | (told_at[handed] > 0)
    findings.at_stake(handed[again])
    one_by_one = zip(
        handed[again].tolist(), before[again].tolist(), nth[again].tolist(), strict=True
    )
    for place, highest, seen in one_by_one:
        times, limit = int(told_at[place]), rows.context_of(place).info.config.max_reconsume_times
        if highest != NOWHERE and _repeats(rows, highest, place):
            findings.shown(CountRepeats, {"first": highest, "second": place})
        elif 0 <= limit < times:
            findings.shown(BeyondTheLimit, {"handed": place})
        elif _runs_ahead(rows, place, times - seen):
            findings.shown(CountRunsAhead, {"handed": place})


def _in_turn(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """Hand-outs by message and answer: where, the one with the highest count before (NOWHERE: none), how many before.

    Left out are those after an acknowledgement that was answered, of their message or, as far as anybody knows, of any.
    """
    answered = rows.ended_as(Outcome.OK) & (rows.end < NEVER) & (rows.group != NO_TEXT)
    of_any = positions(answered & rows.are(Kind.ACK) & may_be_any(rows))
    offset = rows.shared(offsets)
    answered &= offset != NONE
    handed = positions(rows.are(Kind.RECEIVE) & answered & (rows.number("reconsume_times") != NONE))
    acks = positions(rows.are(Kind.ACK) & answered)
    if not len(handed):
        return handed, handed, handed
    where = np.concatenate([handed, acks])
    message, count = dense(rows.lane[where], offset[where])
    over = np.full(count, NEVER, np.int64)
    np.minimum.at(over, message[len(handed) :], rows.end[acks])
    mine = message[: len(handed)]
    known = np.full(int(rows.lane.max()) + 1, NEVER, np.int64)
    np.minimum.at(known, rows.lane[of_any], rows.end[of_any])
    in_time = rows.end[handed] < np.minimum(over[mine], known[rows.lane[handed]])
    handed, mine = handed[in_time], mine[in_time]
    order = by_time(mine, rows.end[handed])
    handed, mine = handed[order], mine[order]
    return handed, *_highest_before(rows.number("reconsume_times")[handed], mine, handed)


def _highest_before(told: Ints, message: Ints, handed: Ints) -> tuple[Ints, Ints]:
    """Of each hand-out where the highest count of its message before it was told first, and how many came before."""
    before, nth = np.full(len(told), NOWHERE, np.int64), np.zeros(len(told), np.int64)
    for index in range(1, len(told)):
        if message[index] != message[index - 1]:
            continue
        last = int(before[index - 1])
        rises = last == NOWHERE or told[index - 1] > told[last]
        before[index] = index - 1 if rises else last
        nth[index] = nth[index - 1] + 1
    known = before != NOWHERE
    before[known] = handed[before[known]]
    return before, nth


def _repeats(rows: Rows, highest: int, place: int) -> bool:
    """Does it tell a count that the one with the highest count before leaves no room for?"""
    first, second = requests(rows, np.asarray([highest, place], np.int64))
    if second.times > first.times or (second.times < first.times and first.end >= second.begin):
        return False
    party = rows.name_of("client_id", highest), rows.name_of("broker", highest)
    return not may_be_cut(rows.context_of(highest), party, first, second.end)


def _runs_ahead(rows: Rows, place: int, unseen: int) -> bool:
    """Does it tell of more unseen hand-outs than answers were lost, while nobody else of the lane asked?"""
    info, now = rows.context_of(place).info, rows.end[place]
    if not info.closed_world or info.begins_late:
        return False
    asked = rows.are(Kind.RECEIVE) & (rows.lane == rows.lane[place]) & (rows.begin < now)
    known = rows.ended_as(Outcome.OK, Outcome.REFUSED)
    lost = int(np.count_nonzero(asked & ~known & (rows.end < now)))
    is_alone = not np.any(asked & (rows.end > now))
    return is_alone and unseen > lost


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
