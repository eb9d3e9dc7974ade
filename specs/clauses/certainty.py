"""What a history can tell: the rules, common to all clauses and both engines, about what a finding rests on.

*Needs.* A clause names the kinds of rows without which nothing about it can be seen. Where the history does not record
one of them the clause is not judged: it is *not recorded*.

*Excuses.* Every other kind that a clause listens to, and every kind that would tell that one of its premises failed,
could excuse what looks like a violation. Where a recorder declares that it does not record one of these, a finding is
at most *possible*. A broker's epoch on every row of the evidence tells its deaths as a crash row would.

*Lives.* What was done in one incarnation of a lane one life of the client did: then no row that tells of another life
(JOIN, LEAVE) could excuse it, recorded or not.

*Absence.* A clause that concludes from somebody's absence (nobody else can hold the lease, nobody committed that
value) is certain only where everybody is recorded. In an open world its findings are at most possible.

*Begins.* Where the recorder says that the history begins late (a rotated log), whatever lasts may have begun before:
a shutdown, a pause, a fault. A clause that one of these could excuse is at most possible there, and so is one that
looks back: that concludes from what did not happen before.

*Gaps.* Where the recorder knows that rows of some kind are missing (a line of a log that nobody could read), what the
others show is judged, and nothing is concluded from there being no more of them: such a kind is not recorded as an
excuse, and what a clause that goes by it finds is at most possible.

*Ends.* In an open world an operation of which the end is not in the history may have ended, and nobody saw when, or how
it was answered. What rests on a listener's call that runs still, or on a commit or an unlock that may have been
refused, is at most possible; and so is what a clause about clients finds of one that has begun such an operation
before, in that lane or queue: it knew more than the history.

*Resets.* Whoever moves the offset of a lane may have moved it at any moment until the answer, and without an answer at
any later one. A finding of a clause that a reset could excuse is at most possible where one of its lane was under way
as anything of the evidence began.

*Clocks.* Rows of one clock are in the order that they say. A row of another clock is only where the bound between
clocks allows: a finding is certain when no row of its key, and none about the run (`OF_THE_RUN`), that another clock
timed, lies within the bound of a begin or an end in the evidence. Then no error of the clocks that the bound allows
changes what came before what. The bound is the largest that the history names of any clock.

What is recorded: what the recorder declares (`records` in run.json); of a history of level `tap` alone, what a tap
sees; of a closed world, everything. Nothing is known of any other history: a kind of which it holds no row counts as
not recorded where a clause needs it, and what could excuse is assumed not to have happened (the verdict says so).
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.vocabulary import Kind, Lane, Level, Outcome

EVERYTHING = frozenset(Kind)
SEEN_BY_A_TAP = frozenset(
    {
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.PULL,
        Kind.COMMIT,
        Kind.FETCH_OFFSET,
        Kind.SEND,
        Kind.SEND_BACK,
        Kind.DEAD_LETTER,
        Kind.MEMBER,
        Kind.ADD,
        Kind.FAULT,
        Kind.CLOCK_STEP,
    }
)
"""What passes between a client and a broker, and what a proxy knows of itself and its machine's clock. Not a listener's
calls, nor crashes and pauses of anybody, nor what an operator does elsewhere."""
OF_THE_RUN = frozenset(
    {
        Kind.CRASH,
        Kind.PAUSE,
        Kind.LEAVE,
        Kind.JOIN,
        Kind.CLOCK_STEP,
        Kind.FAULT,
        Kind.TRIM,
        Kind.RESET,
    }
)
"""Kinds of rows that bear on more than one key."""

THAT_LAST = frozenset({Kind.LEAVE, Kind.PAUSE, Kind.FAULT})
"""Kinds of rows that begin something: a history that begins late may lack the row, and still be in the midst of it."""

THAT_MUST_END = frozenset({Kind.DELIVER, Kind.COMMIT, Kind.UNLOCK})
"""Kinds of rows of which an accusation is certain only where their end is known, in an open world."""

Mark = tuple[int, str | None]
"""A begin or an end: when, in µs, and by which clock."""


def recorded(info: RunInfo) -> frozenset[Kind] | None:
    """The kinds that the history records, of whatever happened of them; None where nobody says."""
    known = told_of(info)
    return known if known is None else known - gaps(info)


def told_of(info: RunInfo) -> frozenset[Kind] | None:
    """The kinds of rows that the history holds, be it with gaps; None where nobody says."""
    if info.records is not None:
        return frozenset(Kind(kind) for kinds in info.records.values() for kind in kinds)
    if set(info.levels) == {Level.TAP.value}:
        return SEEN_BY_A_TAP
    return EVERYTHING if info.closed_world else None


def gaps(info: RunInfo) -> frozenset[Kind]:
    """The kinds of which rows are known to be missing."""
    return frozenset(map(Kind, info.gaps))


def marks_of(row: Row) -> tuple[Mark, ...]:
    """When the operation began and ended."""
    began = (row.started_us, row.clock)
    return (began,) if row.ended_us is None else (began, (row.ended_us, row.clock))


def moved_meanwhile(
    begins: Collection[int], lanes: Collection[Lane], resets: Iterable[Row]
) -> bool:
    """Was a reset of one of these lanes under way as anything that has these seqs began?

    resets: those that took time, or were never answered. Lanes of no group are queues: of whichever group.
    """
    named = [lane for lane in lanes if lane.group]
    for reset in resets:
        mine = reset.lane in named or (
            not named and any(lane[1:] == reset.lane[1:] for lane in lanes)
        )
        answered = reset.seq_end is not None and reset.outcome is not Outcome.UNKNOWN
        until = reset.seq_end if answered and reset.seq_end is not None else NEVER_ANSWERED
        if mine and any(reset.seq_begin < seq < until for seq in begins):
            return True
    return False


NEVER_ANSWERED = 1 << 62
"""A seq after all others."""


def is_one_life(incarnations: Sequence[Any]) -> bool:
    """Do rows of the evidence tell that one life of the client did it? incarnations: those that they name."""
    return len(incarnations) > 1 and len(set(incarnations)) == 1


def is_quiet(evidence: Iterable[Mark], others: Sequence[Mark], bound_us: int) -> bool:
    """Does no mark of another clock, of the evidence or of these others (ascending), lie within the bound of it?"""
    mine = list(evidence)
    for at_us, clock in mine:
        if any(other != clock and abs(us - at_us) <= bound_us for us, other in mine):
            return False
        for index in range(
            bisect_left(others, at_us - bound_us, key=lambda mark: mark[0]), len(others)
        ):
            us, other = others[index]
            if us > at_us + bound_us:
                break
            if other != clock:
                return False
    return True
