"""A clean handover redelivers at most the last batch.

Clean: the old owner dropped the lane in good order and gave its lease back (an unlock that was answered or handed to
the network). The next incarnation of the lane then begins no earlier than with the old owner's last call: whatever
that one had finished in calls before the last, it had to report. The new owner's first delivery shows when it has
not: it is a message that the old owner had finished, in a call before its last one and before its drop, and above
every offset that it had reported when the new owner began. A report that was made and got lost on its way is nobody's
fault, so an old owner that reported an offset beyond the message is not judged, whatever was stored. What is finished
follows the listener's result (auto mode, or a COMMIT that covers it); messages given up as dead letters don't count.
A call of which nobody saw the result, nor says that it was in auto mode, may have been a manual ROLLBACK: what was
taken before it, no later COMMIT covers.
Whoever records ADD records every COMMIT too: an old owner without an ADD is not judged. A client that takes the lane
again before it gave it back hands nothing over: what it gives back afterwards is its later work, be it that its ADD
was seen, or a delivery, or a crash of the client after the drop. After the unlock it is a new owner like any other. Of
two that left the lane before the new owner began, only the one that gave it back last is asked. A reset clears what is
remembered, the ADD too, and an old owner that met a broker's correction (a commit of the value that a pull was told to
go on at, whether or not who recorded it says `detail=corrected`) is not judged. A commit that was refused reported
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import Corrections
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import certainly_acknowledges, may_put_back, may_put_back_unseen
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-14"
TITLE = "a handover redelivers the last batch at most"
STATEMENT = "A clean handover redelivers at most the last batch, unless a report of the consumed offset was lost."
PARTY = Party.PAIR
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#client-leases", "docs/sources.md#offsets")
STAKES = (Stake(Trait.CLEAN_CHANGE, brings=2),)
KINDS = frozenset(
    {Kind.DELIVER, Kind.COMMIT, Kind.ADD, Kind.DROP, Kind.UNLOCK, Kind.RESET, Kind.PULL}
)
NEEDS = frozenset({Kind.DELIVER, Kind.DROP, Kind.UNLOCK})
EXCUSED_BY = frozenset({Kind.CRASH})


@dataclass(frozen=True, slots=True)
class RedeliveredMore(Finding):
    """done: the old owner's delivery of the message. last: its last call."""

    add: Row
    done: Row
    last: Row
    drop: Row
    unlock: Row
    again: Row


@dataclass(frozen=True, slots=True)
class RedeliveredAfterShutdown(RedeliveredMore):
    """The old owner was shutting down when it dropped the lane."""


class _Work:
    """One incarnation. finished: what it has finished and not reported, by offset."""

    __slots__ = ("add", "delivered", "drop", "finished", "last", "left", "taken", "told", "void")

    def __init__(self, add: Row | None, left: _Left | None) -> None:
        self.add = add
        self.left = left  # by whom the lane was left before
        self.delivered = False
        self.finished: dict[int, Row] = {}
        self.taken: dict[int, Row] = {}  # ended well, perhaps in manual mode, not committed
        self.told = -1  # the highest offset reported
        self.last: Row | None = None  # the first row of its last call
        self.drop: Row | None = None
        self.void = False


@dataclass(frozen=True, slots=True)
class _Left:
    """A lane that was left in good order."""

    work: _Work
    drop: Row
    unlock: Row
    leaving: bool


class LaneJudge(Judge):
    """Remembers, for each incarnation, what it has finished and not reported, and who left the lane last."""

    __slots__ = ("corrections", "dropped", "left", "works")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.corrections = Corrections()
        self.works: dict[str, _Work] = {}
        self.dropped: dict[str | None, _Work] = {}  # by client: the lease is still to be given back
        self.left: _Left | None = None

    def begins(self, row: Row) -> Iterable[Finding]:
        self.corrections.begins(row)
        match row.kind:
            case Kind.RESET:
                self.works.clear()
                self.dropped.clear()
                self.left = None
            case Kind.UNLOCK:
                self._unlocked(row)
            case Kind.ADD if row.incarnation is not None:
                self._begun(row.incarnation, row, row)
            case Kind.DROP if row.incarnation in self.works:
                work = self.works[row.incarnation]
                work.drop = row
                self.dropped[row.client_id] = work
            case Kind.COMMIT if row.incarnation in self.works and row.value is not None:
                self._reported(self.works[row.incarnation], row, row.value)
            case Kind.DELIVER if row.incarnation is not None and row.queue_offset is not None:
                work = self.works.get(row.incarnation) or self._begun(row.incarnation, row, None)
                return self._delivered(work, row, row.queue_offset)
            case _:
                pass
        return NOTHING

    def _begun(self, name: str, row: Row, add: Row | None) -> _Work:
        work = self.works[name] = _Work(add, self.left)
        self.dropped.pop(row.client_id, None)  # who takes the lane again hands nothing over
        if self.left is not None:
            old = self.left.work  # what it does from now on comes too late
            old.finished = {
                offset: row for offset, row in old.finished.items() if offset >= old.told
            }
            old.void = True
        self.left = None
        return work

    def _unlocked(self, row: Row) -> None:
        work = self.dropped.pop(row.client_id, None)
        if work is None or work.drop is None or row.outcome not in (Outcome.OK, Outcome.SENT):
            return
        if self.context.client_died_since(row.client_id, work.drop):
            return  # it is a later life of the client that gives its own lease back
        if work.add is not None and not work.void:
            leaving = self.context.is_leaving(row.client_id, row.group) is not None
            self.left = _Left(work, work.drop, row, leaving)

    def _reported(self, work: _Work, row: Row, value: int) -> None:
        if self.corrections.has(row):
            work.void = True
            work.finished.clear()
        elif value > work.told and not work.void:
            work.told = value
            if work.finished and min(work.finished) < value:
                work.finished = {
                    offset: done for offset, done in work.finished.items() if offset >= value
                }

    def _delivered(self, work: _Work, row: Row, offset: int) -> Iterable[Finding]:
        found: Iterable[Finding] = NOTHING
        left, work.left = work.left, None
        if left is not None:
            self.opportunities += 1
            found = self._first_delivery(left, row, offset)
        if not work.void and (work.last is None or work.last.op_id != row.op_id):
            work.last = row
        if may_put_back_unseen(row):
            work.taken.clear()  # nobody may ever see it end
        return found

    def _first_delivery(self, left: _Left, row: Row, offset: int) -> Iterable[Finding]:
        old = left.work
        done, last, add = old.finished.get(offset), old.last, old.add
        if done is None or last is None or add is None or offset >= (last.queue_offset or 0):
            return NOTHING
        kind = RedeliveredAfterShutdown if left.leaving else RedeliveredMore
        return (kind(add, done, last, left.drop, left.unlock, row),)

    def ends(self, row: Row) -> Iterable[Finding]:
        self.corrections.ends(row)
        offset = row.queue_offset
        if row.kind is not Kind.DELIVER or row.incarnation not in self.works or offset is None:
            return NOTHING
        work = self.works[row.incarnation]
        if work.drop is not None or work.void:
            return NOTHING
        if certainly_acknowledges(row):
            work.finished[offset] = row
            work.finished.update(work.taken)
            work.taken.clear()
        elif row.outcome is Outcome.SUCCESS:
            work.taken[offset] = row
        elif may_put_back(row):
            work.taken.clear()
        return NOTHING


judge = LaneJudge


def explain(found: RedeliveredMore) -> str:
    done, last, again = found.done, found.last, found.again
    return (
        f"{who(again)} began {again.lane} with offset {again.queue_offset} at {at(again)}, although {who(done)} had "
        f"finished it in a call of {at(done)} and dropped the lane in good order at {at(found.drop)}; all that may "
        f"come again is its last call, of offset {last.queue_offset}, but it had not reported that far"
    )
