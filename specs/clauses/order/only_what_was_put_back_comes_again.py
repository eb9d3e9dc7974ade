"""What an incarnation delivers again was put back: its batch was suspended, or a ROLLBACK took back all that was taken.

Judged from the message's last delivery by the same incarnation: it must have asked for the message again (SUSPEND,
null, a throw, a manual ROLLBACK), or have ended SUCCESS in manual mode with a manual ROLLBACK since and no
acknowledging call between (that finishes all that was taken). Where nobody says in which mode a call was, it may have
been in either: a ROLLBACK then may have put back all that may have been taken, and so may a call of which nobody saw
the result, if nobody says that it was in auto mode. A message whose own call never ended, was cut, or still runs is the
business of other clauses. Only an incarnation whose ADD was seen is judged: without it,
nobody knows whether the client has dropped the lane and begun anew. A look-up of the stored offset, a reset, and a
broker's correction clear what is remembered: a pull that was told to go back (its code is 21, or not told), and a
commit of the value that a pull was told to go on at, whether or not who recorded it says `detail=corrected`. What is
remembered reaches `REMEMBERED` offsets back from the highest, as far as a client's cache of one lane does; what comes
again from further back than that is not judged here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import OFFSET_MOVED
from specs.clauses.words import at, who
from specs.facts.calls import may_be_by_hand, may_put_back_unseen_of
from specs.facts.findings import Findings
from specs.facts.rows import KINDS as CODED
from specs.facts.rows import OUTCOMES, Rows
from specs.facts.segments import (
    NEVER,
    NO_TEXT,
    NONE,
    NOWHERE,
    Ints,
    Mask,
    Segments,
    Timeline,
    by_time,
    dense,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-10"
TITLE = "only what was put back comes again"
STATEMENT = (
    "Every redelivered message of an incarnation belongs to a batch that was suspended, or to all that was taken and "
    "not committed when the listener rolled back in manual mode."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = frozenset({Kind.DELIVER, Kind.ADD, Kind.FETCH_OFFSET, Kind.RESET, Kind.COMMIT, Kind.PULL})
NEEDS = frozenset({Kind.ADD, Kind.DELIVER})
COLUMNS = (
    "client_id",
    "incarnation",
    "queue_offset",
    "outcome",
    "commit_mode",
    "detail",
    "code",
    "value",
)


@dataclass(frozen=True, slots=True)
class CameAgain(Finding):
    add: Row
    done: Row
    again: Row


REMEMBERED = 1000


def judge(rows: Rows, findings: Findings) -> None:
    """Pairs of deliveries of one offset by one incarnation: the second is judged by how the first ended."""
    wanted = rows.are(Kind.DELIVER, Kind.ADD, Kind.FETCH_OFFSET, Kind.RESET) | (
        rows.are(Kind.COMMIT) & rows.correction
    )
    wanted |= _sent_back(rows)
    where = np.flatnonzero(wanted & (rows.group != NO_TEXT))
    kind = rows.kind[where]
    named = rows.text("incarnation")[where] != NO_TEXT
    work, works = dense(rows.incarnation[where])
    adds = (kind == CODED.index(Kind.ADD)) & named
    add = Segments(work).last_before(adds)
    delivered = (kind == CODED.index(Kind.DELIVER)) & named & (rows.offset[where] != NONE)
    every_call = np.flatnonzero(delivered)
    calls = np.flatnonzero(delivered & (add != NOWHERE))
    if not len(calls):
        return
    cleared = _cleared(rows, where, work, works)
    place = where[calls]
    life = cleared.count_before(
        work[calls], rows.begin[place]
    )  # how often its memory had been cleared
    part, _ = dense(work[calls], life)
    offset = rows.offset[place]
    same, _ = dense(part, offset)
    before = Segments(same).previous()
    highest = Segments(part).highest_before(offset)
    again = np.flatnonzero(before != NOWHERE)
    again = again[offset[again] >= offset[highest[again]] - REMEMBERED]
    findings.at_stake(place[again])
    first = before[again]
    done = _done(rows, place[first]) & (rows.end[place[first]] < rows.begin[place[again]])
    suspects = np.flatnonzero(done)
    if not len(suspects):
        return
    settled = _Settled(rows, where[every_call], work[every_call])
    for suspect in suspects.tolist():
        one, two = int(place[first[suspect]]), int(place[again[suspect]])
        if not settled.put_back(one, two, int(work[calls[again[suspect]]])):
            begun = int(where[add[calls[again[suspect]]]])
            findings.shown(CameAgain, {"add": begun, "done": one, "again": two})


def _sent_back(rows: Rows) -> Mask:
    """The pulls that were told to go on at a lower offset."""
    least = np.maximum(rows.offset, 0)
    code = rows.number("code")
    untold = (code == NONE) & (rows.value != NONE) & (rows.offset != NONE)
    told = (code == OFFSET_MOVED) | untold
    back: Mask = rows.are(Kind.PULL) & told & (rows.value < least) & (rows.end < NEVER)
    return back


def _cleared(rows: Rows, where: Ints, work: Ints, works: int) -> Timeline:
    """The moments at which what is known of an incarnation is forgotten."""
    kind = rows.kind[where]
    commit, add = kind == CODED.index(Kind.COMMIT), kind == CODED.index(Kind.ADD)
    fetch = (kind == CODED.index(Kind.FETCH_OFFSET)) & (rows.end[where] < NEVER)
    pull = kind == CODED.index(Kind.PULL)
    named = rows.text("incarnation")[where] != NO_TEXT
    own = np.flatnonzero(add | commit | fetch | (pull & named))
    wide = np.flatnonzero((kind == CODED.index(Kind.RESET)) | (pull & ~named))
    moments = np.where(fetch | pull, rows.end[where], rows.begin[where])
    of_lane: list[Ints] = []
    at: list[Ints] = []
    lane = rows.lane[where]
    client = rows.client[where]
    of_work, whose = np.zeros(works, np.int64), np.full(works, NO_TEXT, np.int64)
    of_work[work], whose[work[add]] = lane, client[add]
    for row in wide.tolist():
        theirs = (whose == client[row]) | (whose == NO_TEXT)
        hit = np.flatnonzero((of_work == lane[row]) & (~pull[row] | theirs))
        of_lane.append(hit)
        at.append(np.full(len(hit), moments[row]))
    return Timeline(np.concatenate([work[own], *of_lane]), np.concatenate([moments[own], *at]))


def _done(rows: Rows, where: Ints) -> Mask:
    """Did the call at each position end, and certainly not ask for its messages again?"""
    manual = may_be_by_hand(rows)[where]
    ended = rows.end[where] < NEVER
    well = rows.ended_as(Outcome.SUCCESS, Outcome.COMMIT)[where]
    done: Mask = ended & (well | (rows.ended_as(Outcome.ROLLBACK)[where] & ~manual))
    return done


class _Settled:
    """The calls of incarnations by their ends: which of them settle what was taken before.

    Those of which nobody saw the result, by their begins: they may settle it at any time from then on.
    """

    def __init__(self, rows: Rows, place: Ints, work: Ints) -> None:
        self.rows = rows
        self.manual = may_be_by_hand(rows)
        self.unseen = may_put_back_unseen_of(rows)
        settles = np.where(self.unseen[place], rows.begin[place], rows.end[place])
        order = by_time(work, settles)
        self.place, self.work = place[order], work[order]
        self.settles = settles[order]

    def put_back(self, one: int, two: int, work: int) -> bool:
        """Did what may be a manual ROLLBACK put back what the call at `one` may have taken, before the one at `two`
        began?"""
        rows = self.rows
        if not self.manual[one] or OUTCOMES[rows.outcome[one]] is not Outcome.SUCCESS:
            return False
        low, high = np.searchsorted(self.work, [work, work + 1])
        settles = self.settles[low:high]
        first = low + np.searchsorted(settles, rows.end[one], side="right")
        stop = low + np.searchsorted(settles, rows.begin[two], side="left")
        for index in range(first, stop):  # the first or the second tells mostly
            each = self.place[index]
            outcome, manual = OUTCOMES[rows.outcome[each]], bool(self.manual[each])
            if self.unseen[each]:
                return True
            if outcome is Outcome.ROLLBACK:
                return manual
            if outcome is Outcome.COMMIT or (outcome is Outcome.SUCCESS and not manual):
                return False
        return False


def explain(found: CameAgain) -> str:
    done, again = found.done, found.again
    return (
        f"{who(again)} delivered offset {again.queue_offset} of {again.lane} again at {at(again)}, although its call "
        f"of {at(done)} had ended {done.outcome} and nothing had put the message back"
    )
