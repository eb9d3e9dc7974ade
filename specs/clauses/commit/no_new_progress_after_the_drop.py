"""Once a lane is dropped, its incarnation reports no more than it had finished by then.

*Finished by then*: the incarnation's start, and what its calls and acknowledged dead letters had finished, and what
it had committed, before the DROP. A call that still runs at the drop ends for nothing: the lane belongs to somebody
else, who begins before that message. To report the old offset once more is allowed here (CMT-5 and CMT-13 say when
it comes too late).

Judged where the ADD says where the incarnation started, or a look-up of its own since that was answered with a stored
offset; one that found nothing stored, in a group that does not begin with the first message, leaves it unknown, and so
does one that began before the drop and of which nobody saw the answer. One that names no incarnation may be of each
that its client has not dropped: it tells no start, and is excused likewise. A broker's correction (the value that a
pull was told to go on at) and a reset are excused, a commit that was refused is none, and excused is also a message
that may have been given up before the drop where nobody told: in a lane that shows no dead letter, unless a recorder
declares them, and in every lane of a history that begins late, whatever is told there. A dead letter that was
acknowledged after the drop, or never, finished nothing. Nothing is said of a group of which a member filters, as its
start tells: what it passed by it reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import Corrections, IncarnationsJudge, UntoldLetters
from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import NO_FILTER, NO_RESET, ORDERLY
from specs.clauses.rows import acknowledges
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-6"
TITLE = "no new progress after the drop"
STATEMENT = "After a drop no commit of that incarnation exceeds what was finished before it."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#offsets")
STAKES = (Stake(Trait.LONG_CALL),)
KINDS = frozenset(
    {
        Kind.ADD,
        Kind.DROP,
        Kind.DELIVER,
        Kind.DEAD_LETTER,
        Kind.COMMIT,
        Kind.PULL,
        Kind.FETCH_OFFSET,
        Kind.RESET,
    }
)
SETTINGS = ("consume_from", "max_reconsume_times")
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER, Kind.DROP})
EXCUSED_BY = frozenset({Kind.JOIN})
LOOKS_BACK = True
REFINES = ("CMT-1", "CMT-2")


@dataclass(frozen=True, slots=True)
class ProgressAfterDrop(Finding):
    """start: the look-up that says where it started, where the ADD does not."""

    add: Row
    start: Row
    drop: Row
    commit: Row
    finished: int


class _Incarnation:
    """One incarnation.

    start: what says where it started, None while nothing does. unknown: nothing ever will. finished: the highest offset
    that it may report, once that is known. given_up: likewise, with what it may have given up unseen. delivered: beyond
    the highest message that it began. looking: the look-ups that it began before its drop, without an answer.
    """

    __slots__ = ("add", "delivered", "drop", "finished", "given_up", "looking", "start", "unknown")

    def __init__(self, add: Row) -> None:
        self.add = add
        self.start: Row | None = None if add.value is None else add
        self.unknown = False
        self.finished = -1 if add.value is None else add.value
        self.delivered = self.given_up = -1
        self.drop: Row | None = None
        self.looking: set[int] = set()

    @property
    def is_known(self) -> bool:
        return self.start is not None and not self.unknown and not self.looking


class LaneJudge(IncarnationsJudge[_Incarnation]):
    """Remembers, for each incarnation that was added, how far it has come, and its drop; and what pulls were told."""

    __slots__ = ("corrections", "letters")

    def __init__(self, context: Context) -> None:
        super().__init__(context, _Incarnation)
        self.corrections = Corrections()
        self.letters = UntoldLetters(context)

    def begins(self, row: Row) -> Iterable[Finding]:
        self.corrections.begins(row)
        self.letters.begins(row)
        if row.kind is Kind.FETCH_OFFSET:
            for mine in self._asking(row):
                if mine.drop is None:
                    mine.looking.add(row.seq_begin)
        return super().begins(row)

    def _asking(self, row: Row) -> Iterable[_Incarnation]:
        """The incarnations whose look-up it may be."""
        if row.incarnation is None:
            everyone = self.incarnations.values()
            return [each for each in everyone if each.add.client_id == row.client_id]
        mine = self.known(row)
        return () if mine is None else (mine,)

    def begun(self, known: _Incarnation, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DROP and known.drop is None:
            known.drop = row
            may_pass = self._may_pass_by(row)
            if known.is_known and known.delivered > known.finished and not may_pass:
                self.opportunities += 1  # what it began and did not finish must not be reported
        elif row.kind is Kind.DELIVER and row.queue_offset is not None:
            known.delivered = max(known.delivered, row.queue_offset + 1)
        elif row.kind is Kind.COMMIT and row.value is not None:
            return self._committed(known, row, row.value)
        return NOTHING

    def _committed(self, mine: _Incarnation, row: Row, value: int) -> Iterable[Finding]:
        is_correction = self.corrections.has(row)
        if mine.drop is None:
            _reached(mine, value)
            return NOTHING
        if is_correction or self._may_pass_by(row) or mine.start is None or not mine.is_known:
            return NOTHING
        if mine.finished < value <= mine.given_up and not self.letters.told:
            return NOTHING
        self.opportunities += 1
        if value <= mine.finished:
            return NOTHING
        return (ProgressAfterDrop(mine.add, mine.start, mine.drop, row, mine.finished),)

    def _may_pass_by(self, row: Row) -> bool:
        """May the client report what it did not want, although no pull was told to go on there?"""
        return self.context.is_filtered(row.group or "")

    def ends(self, row: Row) -> Iterable[Finding]:
        self.corrections.ends(row)
        if row.kind is Kind.FETCH_OFFSET:
            for each in self._asking(row):
                self._looked_up(each, row)
            return NOTHING
        mine = self.known(row)
        if mine is None or row.queue_offset is None:
            return NOTHING
        if row.kind is Kind.DELIVER:
            if mine.drop is None and acknowledges(row):
                _reached(mine, row.queue_offset + 1)
            elif mine.drop is None and self.letters.may_take(row):
                mine.given_up = max(mine.given_up, row.queue_offset + 1)
        elif row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK and mine.drop is None:
            _reached(mine, row.queue_offset + 1)
        return NOTHING

    def _looked_up(self, mine: _Incarnation, row: Row) -> None:
        if row.outcome is Outcome.REFUSED or (row.outcome is Outcome.OK and row.value is not None):
            mine.looking.discard(row.seq_begin)
        if mine.drop is not None:
            return
        if row.outcome is Outcome.OK and row.value is not None and row.value >= 0:
            if row.incarnation is not None:
                mine.start = mine.start or row
            _reached(mine, row.value)
        elif (
            row.outcome is Outcome.REFUSED
            and row.value == -1
            and self.config.consume_from != "first"
        ):
            mine.unknown = True  # it starts somewhere near the queue's end


def _reached(mine: _Incarnation, offset: int) -> None:
    mine.finished = max(mine.finished, offset)


judge = LaneJudge


def explain(found: ProgressAfterDrop) -> str:
    drop, commit = found.drop, found.commit
    return (
        f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, after it had dropped the lane at "
        f"{at(drop)}; by then it had come to {found.finished}"
    )
