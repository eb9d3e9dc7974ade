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
from specs.vocabulary import Key, Kind, Level, Outcome, Party, Queue

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
    for lane in np.unique(rows.lane[first]).tolist():
        mine = np.flatnonzero(rows.lane[first] == lane)
        its_reads = reads[rows.lane[reads] == lane]
        its_reads = its_reads[np.argsort(rows.end[its_reads], kind="stable")]
        until = over[mine].copy()
        for index, one in enumerate(mine.tolist()):
            passed = _passed(rows, its_reads, int(first[one]), int(over[one]))
            if passed is not None:
                findings.shown(Unfinished, {"handed": int(first[one]), "reading": passed})
                until[index] = rows.end[passed] + 1  # it is told once
        since, until = np.sort(rows.end[first[mine]]), np.sort(until)
        at = rows.end[its_reads]
        is_open = np.searchsorted(since, at, "left") > np.searchsorted(until, at, "right")
        findings.at_stake(its_reads[is_open])


def _passed(rows: Rows, reads: Ints, handed: int, over: int) -> int | None:
    """The first reading beyond the message, between its hand-out and its end."""
    beyond = rows.value[reads] > rows.offset[handed]
    after = rows.begin[reads] > rows.end[handed]
    found = reads[beyond & after & (rows.end[reads] < over)]
    if not len(found):
        return None
    read = int(found[0])
    names = (rows.name_of("topic", read), rows.name_of("broker", read))
    queue = Queue(*names, int(rows.number("queue_id")[read]))
    kept_from = rows.context_of(read).kept_from(queue, int(rows.end[read]))
    return read if rows.offset[handed] >= kept_from else None


def explain(found: Unfinished) -> str:
    handed, reading = found.handed, found.reading
    return (
        f"at {at(reading)} the store had {reading.value} for {reading.lane}, beyond offset {handed.queue_offset}, "
        f"which {who(handed)} was handed at {at(handed)} and which nobody had acknowledged by then"
    )
