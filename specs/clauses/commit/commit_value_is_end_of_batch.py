"""Every committed value is the end of a finished batch, the start, or what was committed before; and it comes in time.

*Value*: the incarnation's start (its ADD, set anew by its look-up), its last commit's value, or one more than the
highest offset of a batch that it finished: by a call that acknowledges, or by giving the batch's last message up,
perhaps where nobody told. A commit that was refused is none, whatever its value. Judged where the start was seen, and
every look-up was seen to be answered; a broker's correction (of the value that a pull was told to go on at) and a reset
are excused.

*In time*: a batch that a call finished is committed before the client has worked on for longer than the first
persist delay, one persist interval and the slack of a timer. A commit that was refused reported nothing; the time for
the last batch that it would have reported begins anew with the refusal. Judged where the ADD was seen: whoever records
adds records commits. Not claimed after a drop, a pause of the client or a crash of the broker, and said once for each
incarnation. Nor, unless the run declares that clients themselves tell their commits, where a pause of the broker or a
fault of the link stood in the way of one: elsewhere it is seen only once it gets through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from specs.clauses.context import Context
from specs.clauses.incarnations import Corrections, UntoldLetters
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, NO_FILTER, NO_RESET, NOT_PAUSED, ORDERLY
from specs.clauses.progress import start_of
from specs.clauses.rows import (
    acknowledges,
    certainly_acknowledges,
    is_manual,
    moved_nothing,
    over_us,
)
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Level, Outcome, Party

ID = "CMT-2"
TITLE = "a committed value is the end of a batch, in time"
STATEMENT = (
    "Every committed value is one more than the end of a finished batch (or the start), and comes within the persist "
    "interval."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER, NOT_PAUSED, BROKER_LIVES)
SOURCES = ("docs/sources.md#offsets", "docs/sources.md#orderly-loop")
KINDS = frozenset(
    {
        Kind.COMMIT,
        Kind.DELIVER,
        Kind.DEAD_LETTER,
        Kind.PULL,
        Kind.ADD,
        Kind.DROP,
        Kind.FETCH_OFFSET,
        Kind.RESET,
    }
)
SETTINGS = ("consume_from", "max_reconsume_times", "persist_first_ms", "persist_ms")
NEEDS = frozenset({Kind.ADD, Kind.COMMIT, Kind.DELIVER})
TOLD_OF_REFUSED_COMMITS = True


@dataclass(frozen=True, slots=True)
class OddValue(Finding):
    start: Row
    commit: Row


@dataclass(frozen=True, slots=True)
class NotInTime(Finding):
    add: Row
    finished: Row
    later: Row
    bound_ms: int


class _Owed(NamedTuple):
    """A finished batch that is not committed yet: its end, its highest row, and since when it waits."""

    end: int
    row: Row
    since_us: int


class _Incarnation:
    """One incarnation: its start, the ends of the batches that it finished, and those not committed yet."""

    __slots__ = (
        "add",
        "asked",
        "calls",
        "committed",
        "dropped",
        "ends",
        "given_up",
        "last_call",
        "late",
        "owed",
        "sent",
        "start",
        "start_row",
    )

    def __init__(self) -> None:
        self.add: Row | None = None
        self.asked: set[int] = set()  # its look-ups of which nobody saw the answer
        self.start: int | None = None
        self.start_row: Row | None = None
        self.ends = Intervals()
        self.committed: int | None = None
        self.calls: dict[int, int] = {}  # running calls: op → highest offset
        self.last_call: Row | None = None  # the highest row of the call that began last
        self.given_up: set[int] = set()  # ends of batches that it may have given up unseen
        self.owed: deque[_Owed] = deque()
        self.sent: dict[
            int, _Owed
        ] = {}  # by a commit under way: the last batch that waits no longer because of it
        self.late = False  # was lateness found?
        self.dropped = False


class LaneJudge(Judge):
    """Remembers, for each incarnation, the ends of its finished batches (as ranges) and what is to be committed."""

    __slots__ = ("bound_ms", "corrections", "incarnations", "letters", "told_as_sent", "void")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = self.config
        self.bound_ms = config.persist_first_ms + config.persist_ms + config.schedule_slack_ms
        told = (context.info.records or {}).get(Level.CLIENT.value, ())
        self.told_as_sent = Kind.COMMIT.value in told
        self.corrections = Corrections()
        self.letters = UntoldLetters(context)
        self.incarnations: dict[str, _Incarnation] = {}
        self.void: set[str] = set()  # incarnations under which the offset was reset

    def begins(self, row: Row) -> Iterable[Finding]:
        name, kind = row.incarnation, row.kind
        self.corrections.begins(row)
        self.letters.begins(row)
        if kind is Kind.RESET:
            self.void.update(self.incarnations)
            self.incarnations.clear()
            return NOTHING
        if name is None:
            return NOTHING
        if kind is Kind.ADD:
            mine = self.incarnations[name] = _Incarnation()
            mine.add = row
            self.void.discard(name)
            if row.value is not None:
                mine.start, mine.start_row = row.value, row
            return NOTHING
        found = self.incarnations.get(name)
        if found is None:
            # Nothing is claimed about an incarnation whose beginning was not seen, nor about one that was reset.
            return NOTHING
        if kind is Kind.DELIVER:
            if row.queue_offset is not None:
                highest = found.calls.get(row.op_id)
                if highest is None or row.queue_offset > highest:
                    found.calls[row.op_id] = row.queue_offset
                    found.last_call = row
            return self._works(found, row) if found.owed else NOTHING
        if kind is Kind.PULL:
            return self._works(found, row) if found.owed else NOTHING
        if kind is Kind.COMMIT:
            return self._committed(found, row)
        if kind is Kind.FETCH_OFFSET:
            found.asked.add(row.seq_begin)
        if kind is Kind.DROP:
            found.dropped = True
            found.owed.clear()
        return NOTHING

    def _works(self, mine: _Incarnation, row: Row) -> Iterable[Finding]:
        """The incarnation is still at work: is a finished batch waiting for its commit for too long?"""
        while mine.owed and mine.add is not None:
            _, finished, since_us = mine.owed[0]
            if row.started_us <= since_us + self.bound_ms * MS:
                break
            context = self.context
            excused = context.paused_since(row.client_id, since_us) or context.broker_died_since(
                row.broker, finished
            )
            if excused or self._may_wait(finished, since_us, row):
                mine.owed.popleft()
                continue
            mine.late = True
            mine.owed.clear()
            self.opportunities += 1  # what was in time is counted with its commit
            return (NotInTime(mine.add, finished, row, self.bound_ms),)
        return NOTHING

    def _may_wait(self, finished: Row, since_us: int, later: Row) -> bool:
        """May the commit be on its way, where it is seen only as it arrives?"""
        if self.told_as_sent:
            return False
        # What was over as the batch ended is in nobody's way when the commit is due.
        after_us = since_us + self.config.delay_bound_ms * MS
        commit = finished._replace(kind=Kind.COMMIT, started_us=after_us)
        return self.context.is_disturbed(commit, later.started_us)

    def _committed(self, mine: _Incarnation, row: Row) -> Iterable[Finding]:
        value, is_correction = row.value, self.corrections.has(row)
        if value is None:
            return NOTHING
        while mine.owed and mine.owed[0].end <= value:
            mine.sent[row.seq_begin] = mine.owed.popleft()
        if is_correction:
            mine.committed = value
            return NOTHING
        if mine.start_row is None or moved_nothing(row):
            return NOTHING
        fits = value in (mine.start, mine.committed) or value in mine.ends
        mine.committed = value
        if mine.asked:
            return NOTHING
        if not fits and value in mine.given_up and not self.letters.told:
            return NOTHING
        self.opportunities += 1
        return NOTHING if fits else (OddValue(mine.start_row, row),)

    def ends(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        self.corrections.ends(row)
        if name is None:
            return NOTHING
        mine = self.incarnations.get(name)
        if row.kind is Kind.FETCH_OFFSET:
            if mine is None and name not in self.void:
                mine = self.incarnations[name] = _Incarnation()
            if mine is not None:
                self._looked_up(mine, row)
        elif mine is None:
            return NOTHING
        elif row.kind is Kind.DELIVER:
            self._call_ends(mine, row)
        elif row.kind is Kind.COMMIT:
            waits = mine.sent.pop(row.seq_begin, None)
            if (
                waits is not None
                and row.outcome is Outcome.REFUSED
                and not (mine.dropped or mine.late)
            ):
                mine.owed.appendleft(waits._replace(since_us=over_us(row)))
        elif row.kind is Kind.DEAD_LETTER:
            self._gave_up(mine, row)
        return NOTHING

    def _looked_up(self, mine: _Incarnation, row: Row) -> None:
        if row.outcome is Outcome.REFUSED or (row.outcome is Outcome.OK and row.value is not None):
            mine.asked.discard(row.seq_begin)
        if row.outcome is Outcome.OK and row.value is not None and row.value >= 0:
            mine.start, mine.start_row = row.value, row
        elif row.outcome is Outcome.REFUSED and row.value == -1:
            first = self.config.consume_from == "first"
            mine.start, mine.start_row = (0, row) if first else (None, None)

    def _call_ends(self, mine: _Incarnation, row: Row) -> None:
        offset = row.queue_offset
        if offset is None or mine.calls.get(row.op_id) != offset:
            return
        del mine.calls[row.op_id]
        if acknowledges(row) and not mine.dropped:
            mine.ends.add(offset + 1)
            if mine.add is not None and not mine.late and certainly_acknowledges(row):
                mine.owed.append(_Owed(offset + 1, row, over_us(row)))
        elif self.letters.may_take(row):
            mine.given_up.add(offset + 1)

    def _gave_up(self, mine: _Incarnation, row: Row) -> None:
        last = mine.last_call
        if row.outcome is not Outcome.OK or last is None or last.queue_offset != row.queue_offset:
            return
        if (
            last.outcome in LISTENER_SUSPENDS
            and not is_manual(last)
            and row.queue_offset is not None
        ):
            mine.ends.add(row.queue_offset + 1)


judge = LaneJudge


def explain(found: OddValue | NotInTime) -> str:
    if isinstance(found, OddValue):
        start, commit = found.start, found.commit
        return (
            f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}; that is neither its start "
            f"({start_of(start)}) nor the end of a batch that it had finished since {at(start)}"
        )
    finished, later = found.finished, found.later
    waited = later.started_us - over_us(finished)
    return (
        f"{who(later)} finished offset {finished.queue_offset} of {later.lane} at {at(finished)} and was still at work "
        f"{ms(waited)} later, at {at(later)}, without having committed {(finished.queue_offset or 0) + 1}; "
        f"{found.bound_ms} ms are allowed"
    )
