"""ORD-10 over columns: only messages that come again, and what happened around them, are looked at one by one."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_manual
from specs.facts.calls import may_be_by_hand, may_put_back_unseen_of
from specs.facts.findings import Findings
from specs.facts.rows import KINDS, OFFSET_MOVED, OUTCOMES, Rows
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
from specs.vocabulary import Kind, Outcome

REMEMBERED = 1000


def kernel(rows: Rows, findings: Findings) -> None:
    """Pairs of deliveries of one offset by one incarnation: the second is judged by how the first ended."""
    wanted = rows.are(Kind.DELIVER, Kind.ADD, Kind.FETCH_OFFSET, Kind.RESET) | (
        rows.are(Kind.COMMIT) & rows.correction
    )
    wanted |= _sent_back(rows)
    where = np.flatnonzero(wanted & (rows.group != NO_TEXT))
    kind = rows.kind[where]
    named = rows.text("incarnation")[where] != NO_TEXT
    work, works = dense(rows.incarnation[where])
    adds = (kind == KINDS.index(Kind.ADD)) & named
    add = Segments(work).last_before(adds)
    delivered = (kind == KINDS.index(Kind.DELIVER)) & named & (rows.offset[where] != NONE)
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
            findings.violation([int(where[add[calls[again[suspect]]]]), one, two])


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
    commit, add = kind == KINDS.index(Kind.COMMIT), kind == KINDS.index(Kind.ADD)
    fetch = (kind == KINDS.index(Kind.FETCH_OFFSET)) & (rows.end[where] < NEVER)
    pull = kind == KINDS.index(Kind.PULL)
    named = rows.text("incarnation")[where] != NO_TEXT
    own = np.flatnonzero(add | commit | fetch | (pull & named))
    wide = np.flatnonzero((kind == KINDS.index(Kind.RESET)) | (pull & ~named))
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


TWIN = Twin(
    "ORD-10",
    (
        "client_id",
        "incarnation",
        "queue_offset",
        "outcome",
        "commit_mode",
        "detail",
        "code",
        "value",
    ),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


def finished_comes_again(trace: Trace) -> Changes:
    for calls in trace.calls:
        for before, row in itertools.pairwise(calls):
            done = (
                before.outcome is Outcome.SUCCESS
                and before.seq_end is not None
                and not is_manual(before)
            )
            if done and (before.seq_end or 0) < row.seq_begin and before.op_id != row.op_id:
                again = trace.another(before, before, 1, attempt=2)
                yield partial(lambda a, b: trace.with_more([a], [b.seq_begin]), again, before)


DEFECTS = (
    Mutant(
        "finished-comes-again",
        "ORD-10",
        "a finished message is delivered again",
        finished_comes_again,
    ),
)
