"""Below the floor that a store tells of a group, every message that was handed out is finished.

The floor is what a witness reads (PROGRESS). A message may be finished from the moment on at which somebody begins to
acknowledge it, under whatever lease, or it is given up; and a message that was handed out as often as it may be may
have been given up without a word. A request that names its message by id alone speaks of the offset that was handed out
with that id (`specs.facts.message_names`); else, and where an answer was lost, it may be of any message of the lane
whose hand-out had begun. Only one that had certainly been handed out before the witness asked is looked at. Of
commits of offsets the same is said by a clause of its own: here the store speaks for messages that are acknowledged one
by one.
"""

import numpy as np

from specs.clauses.premises import NOT_MOVED, NOT_REMOVED
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.message_names import offsets
from specs.facts.segments import chosen, dense, positions
from specs.vocabulary import Key, Kind, Level, Outcome, Party

ID = "FLR-1"
TITLE = "nothing unfinished below the floor"
STATEMENT = "Below the floor that the store tells of a group, every message that was handed out is finished."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NOT_REMOVED, NOT_MOVED)
SOURCES = ("docs/sources.md#acknowledgement-floor",)
KINDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.DEAD_LETTER, Kind.PROGRESS})
LEVELS = frozenset(Level)
NEEDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.PROGRESS})
SETTINGS = ("max_reconsume_times",)
CONCLUDES_FROM_ABSENCE = True
COLUMNS = ("lease_id", "message_id", "queue_offset", "reconsume_times", "value")


class Unfinished(Finding):
    handed: Row
    reading: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Only lanes of which somebody has read the floor are looked at."""
    answered = rows.ended_as(Outcome.OK) & (rows.end < NEVER) & (rows.group != NO_TEXT)
    reads = positions(rows.are(Kind.PROGRESS) & answered & (rows.value != NONE))
    offset, about = rows.shared(offsets), np.isin(rows.lane, rows.lane[reads])
    handed = positions(rows.are(Kind.RECEIVE) & answered & about & (offset != NONE))
    if not len(handed):
        return
    finishing = rows.are(Kind.ACK, Kind.DEAD_LETTER) | _may_be_last_time(rows)
    finishing &= ~rows.ended_as(Outcome.REFUSED) & about
    unnamed = Line(rows.lane, -rows.end, positions(finishing & (offset == NONE)))
    finishes = positions(finishing & (offset != NONE))
    where = np.concatenate([handed, finishes])
    message, count = dense(rows.lane[where], offset[where])
    first, over = np.full(count, NOWHERE, np.int64), np.full(count, NEVER, np.int64)
    np.minimum.at(over, message[len(handed) :], rows.begin[finishes])
    in_turn = np.argsort(-rows.end[handed], kind="stable")
    first[message[: len(handed)][in_turn]] = handed[in_turn]  # the earliest is written last
    # Of those that ended after its first hand-out had begun, the one that began first.
    request = unnamed.highest_before(rows.lane[first], -rows.begin[first], -rows.begin)
    over = np.minimum(over, chosen(rows.begin, request, NEVER))
    first_end = np.where(first != NOWHERE, rows.end[first], NEVER)
    _judge(rows, findings, reads, first[first_end < over], over[first_end < over])


def _may_be_last_time(rows: Rows) -> Mask:
    """Which hand-outs may be as many as there may be of the message? An answer that was lost may be of any message."""
    found, handed = rows.are(Kind.RECEIVE), rows.of(Kind.RECEIVE)
    times = rows.number("reconsume_times")[handed]
    limit = rows.config("max_reconsume_times", handed)
    found[handed] = (limit >= 0) & ((times == NONE) | (times >= limit))
    return found


def _judge(rows: Rows, findings: Findings, reads: Ints, first: Ints, over: Ints) -> None:
    """first: where each message was first handed out; over: the seq from which it may be finished."""
    lane, end, offset = rows.lane[first], rows.end[first], rows.offset[first]

    def passes(message: Ints, read: Ints) -> Mask:
        found: Mask = (rows.value[read] > offset[message]) & (rows.begin[read] > end[message])
        return found & (rows.end[read] < over[message])

    beyond = Line(rows.lane, rows.end, reads).first_after_with(lane, end, passes)
    until = over.copy()
    for each in positions(beyond != NOWHERE).tolist():
        read = int(beyond[each])
        kept_from = rows.context_of(read).kept_from(rows.queue_of(read), int(rows.end[read]))
        if offset[each] >= kept_from:
            findings.shown(Unfinished, {"handed": int(first[each]), "reading": read})
            until[each] = rows.end[read] + 1  # it is told once
    known = np.arange(len(first))
    begun = Line(lane, end, known).count_before(rows.lane[reads], rows.end[reads])
    done = Line(lane, until, known).count_before(rows.lane[reads], rows.end[reads] + 1)
    findings.at_stake(reads[begun > done])


def explain(found: Unfinished) -> str:
    handed, reading = found.handed, found.reading
    return (
        f"at {at(reading)} the store had {reading.value} for {reading.lane}, beyond offset {handed.queue_offset}, "
        f"which {who(handed)} was handed at {at(handed)} and which nobody had acknowledged by then"
    )
