"""What an incarnation delivers again was put back: its batch was suspended, or a ROLLBACK took back all that was taken.

Judged from the message's last delivery by the same incarnation: it must have asked for the message again (SUSPEND,
null, a throw, a manual ROLLBACK), or have ended SUCCESS in manual mode with a manual ROLLBACK since and no
acknowledging call between (that finishes all that was taken). Where nobody says in which mode a call was, it may have
been in either: a ROLLBACK then may have put back all that may have been taken, and so may a call of which nobody saw
the result, if nobody says that it was in auto mode. A message whose own call never ended, was cut, or still runs is the
business of other clauses. Only an incarnation whose ADD was seen is judged: without it, nobody knows whether the client
has dropped the lane and begun anew. A look-up of the stored offset that did not fail, a reset, and a broker's
correction clear what is remembered, also where they name no incarnation: a pull that was told to go back (its code is
21, or not told, or it was refused), and a commit of the value that a pull was told to go on at, whether or not who
recorded it says `detail=corrected`. What is remembered reaches `REMEMBERED` offsets back from the highest, as far as a
client's cache of one lane does; what comes again from further back than that is not judged here.
"""

import numpy as np

from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.calls import may_be_by_hand, may_put_back_unseen_of
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.corrections import set_anew
from specs.facts.rows import OUTCOMES
from specs.facts.segments import Segments, by_time, dense, positions
from specs.facts.tenures import Tenures
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


class CameAgain(Finding):
    add: Row
    done: Row
    again: Row


REMEMBERED = 1000


def judge(rows: Rows, findings: Findings) -> None:
    """Pairs of deliveries of one offset by one incarnation: the second is judged by how the first ended."""
    tenures, work, begin = rows.shared(Tenures), rows.incarnation, rows.begin
    delivered = tenures.named & rows.are(Kind.DELIVER) & (rows.offset != NONE)
    calls = positions(delivered & (tenures.add != NOWHERE))
    memory = dense(tenures.stand, rows.shared(set_anew))[0][calls]
    offset = rows.offset[calls]
    before = Segments(dense(memory, offset)[0]).previous()
    highest = Segments(memory).highest_before(offset)
    again = positions(before != NOWHERE)
    again = again[offset[again] >= offset[highest[again]] - REMEMBERED]
    findings.at_stake(calls[again])
    first, second = calls[before[again]], calls[again]
    done = _done(rows, first) & (rows.end[first] < begin[second])
    first, second = first[done], second[done]
    if not len(first):
        return
    every_call = positions(delivered)
    settled = _Settled(rows, every_call, work[every_call])
    for one, two in zip(first.tolist(), second.tolist(), strict=True):
        if not settled.put_back(one, two, int(work[two])):
            findings.shown(CameAgain, {"add": int(tenures.add[two]), "done": one, "again": two})


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
