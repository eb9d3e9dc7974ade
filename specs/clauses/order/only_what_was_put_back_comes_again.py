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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import OFFSET_MOVED, Corrections, may_go_back
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import certainly_acknowledges, may_put_back, may_put_back_unseen
from specs.clauses.words import at, who
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

REMEMBERED = 1000
"""Offsets. RocketMQ's `pullThresholdForQueue`: how many messages of one lane a client holds."""


@dataclass(frozen=True, slots=True)
class CameAgain(Finding):
    add: Row
    done: Row
    again: Row


class _Work:
    """One incarnation: the last delivery of each offset that it is done with, lowest offsets forgotten first."""

    __slots__ = ("add", "done", "forgotten", "highest", "last", "taken")

    def __init__(self, add: Row) -> None:
        self.add = add
        self.clear()

    def clear(self) -> None:
        self.last: dict[int, int] = {}  # offset → the seq of its last delivery
        self.done: dict[
            int, Row
        ] = {}  # offset → that delivery, when it does not ask for the message again
        self.taken: set[int] = set()  # of these: ended well, perhaps in manual mode, not committed
        self.highest = -1
        self.forgotten = 0  # below this offset nothing is remembered

    def put_back(self) -> None:
        """All that was taken may come again."""
        for each in self.taken:
            self.done.pop(each, None)
        self.taken.clear()

    def forget(self) -> None:
        """Keep at most twice what has to be remembered."""
        low = self.highest - REMEMBERED
        if low - self.forgotten > REMEMBERED:
            self.forgotten = low
            self.last = {offset: seq for offset, seq in self.last.items() if offset >= low}
            self.done = {offset: row for offset, row in self.done.items() if offset >= low}
            self.taken = {offset for offset in self.taken if offset >= low}


class LaneJudge(Judge):
    """Remembers, for each incarnation, what it is done with."""

    __slots__ = ("corrections", "works")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.corrections = Corrections()
        self.works: dict[str, _Work] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        self.corrections.begins(row)
        if row.kind is Kind.RESET:
            for each in self.works.values():
                each.clear()
        elif name is None:
            return NOTHING
        elif row.kind is Kind.ADD:
            self.works[name] = _Work(row)
        elif row.kind is Kind.COMMIT:
            if self.corrections.has(row) and name in self.works:
                self.works[name].clear()
        elif row.kind is Kind.DELIVER and row.queue_offset is not None and name in self.works:
            return self._delivered(self.works[name], row, row.queue_offset)
        return NOTHING

    def _pulled(self, pull: Row) -> None:
        """A pull may be told to go back. One that names no incarnation speaks for its client."""
        moved = pull.code == OFFSET_MOVED and (pull.value or 0) < (pull.queue_offset or 0)
        if not (moved or may_go_back(pull)):
            return
        for name, work in self.works.items():
            if pull.incarnation in (None, name) and (
                pull.incarnation or work.add.client_id in (None, pull.client_id)
            ):
                work.clear()

    def _delivered(self, work: _Work, row: Row, offset: int) -> Iterable[Finding]:
        found: Iterable[Finding] = NOTHING
        if offset in work.last and offset >= work.highest - REMEMBERED:
            self.opportunities += 1
            if offset in work.done:
                found = (CameAgain(work.add, work.done[offset], row),)
        work.last[offset] = row.seq_begin
        work.done.pop(offset, None)
        work.taken.discard(offset)
        if offset > work.highest:
            work.highest = offset
            work.forget()
        if may_put_back_unseen(row):
            work.put_back()  # nobody may ever see it end
        return found

    def ends(self, row: Row) -> Iterable[Finding]:
        name, offset = row.incarnation, row.queue_offset
        self.corrections.ends(row)
        if row.kind is Kind.PULL:
            self._pulled(row)
        if name is None or name not in self.works:
            return NOTHING
        work = self.works[name]
        if row.kind is Kind.FETCH_OFFSET:
            work.clear()
        elif row.kind is Kind.DELIVER and offset is not None:
            is_last = work.last.get(offset) == row.seq_begin
            if certainly_acknowledges(row):
                work.taken.clear()
                if is_last:
                    work.done[offset] = row
            elif row.outcome is Outcome.SUCCESS:
                if is_last:
                    work.done[offset] = row
                    work.taken.add(offset)
            elif may_put_back(row):
                work.put_back()
        return NOTHING


judge = LaneJudge


def explain(found: CameAgain) -> str:
    done, again = found.done, found.again
    return (
        f"{who(again)} delivered offset {again.queue_offset} of {again.lane} again at {at(again)}, although its call "
        f"of {at(done)} had ended {done.outcome} and nothing had put the message back"
    )
