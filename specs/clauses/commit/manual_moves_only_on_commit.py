"""In manual mode no commit passes a message whose call did not end in COMMIT, nor a later one.

What a call took in manual mode is finished when that call, or a later one of the incarnation, ends in COMMIT. So does a
call in auto mode that acknowledges, and an acknowledged dead letter in auto mode: the client then commits all that it
has taken. A ROLLBACK puts back all that was taken: it is in nobody's hands until it is delivered again, and no COMMIT
before that finishes it. A dead letter that does not say its mode is of the mode of the last call that suspended its
message. The client may have committed all where a call in auto mode suspended a message with its retries used up, and
nobody tells whether it was given up (as in a history that begins late, whatever is told there): then nothing is claimed
of what was taken before. A dead letter tells that it was not, where it is refused or never answered. Every other end
(SUCCESS as well) leaves the offset where it was. The lowest message that was so left is remembered, and a commit beyond
it is a violation.

Judged where the ADD was seen, up to the DROP (after it see CMT-6); what a call took that began before the ADD is of an
earlier life. A broker's correction (the value that a pull was told to go on at) and a reset are excused, and a commit
that was refused is none. Says nothing about the incarnation's start (the value of its ADD), which may be reported at
any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import Corrections, IncarnationsJudge, UntoldLetters
from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import NO_FILTER, NO_RESET, ORDERLY
from specs.clauses.rows import acknowledges, is_manual
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party

ID = "CMT-3"
TITLE = "manual mode moves only on COMMIT"
STATEMENT = "In manual mode the offset moves only when a call ends in COMMIT."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.MANUAL),)
KINDS = frozenset(
    {Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.DEAD_LETTER, Kind.COMMIT, Kind.PULL, Kind.RESET}
)
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.ADD, Kind.COMMIT, Kind.DELIVER})
REFINES = ("CMT-1", "CMT-2")


@dataclass(frozen=True, slots=True)
class MovedWithoutCommit(Finding):
    """taken: a manual call's message that no COMMIT covered."""

    add: Row
    taken: Row
    commit: Row


class _Incarnation:
    """One incarnation: the lowest message that a manual call took and no COMMIT has covered.

    since: likewise, of those since a message may last have been given up unseen, which commits what was taken.
    suspended: the messages that its calls suspended, by offset, and whether that was in manual mode. taken: what manual
    calls took since the last COMMIT, by offset; back: what a ROLLBACK put back, until it is delivered again.
    """

    __slots__ = ("add", "back", "lowest", "manual", "since", "suspended", "taken")

    def __init__(self, add: Row) -> None:
        self.add = add
        self.lowest: Row | None = None
        self.since: Row | None = None
        self.manual = False  # is its latest call in manual mode?
        self.suspended: dict[int, bool] = {}
        self.taken: dict[int, Row] = {}
        self.back: dict[int, Row] = {}

    def takes(self, row: Row, offset: int) -> None:
        """A manual call has ended, and not in COMMIT."""
        self.lowest, self.since = _lower(self.lowest, row), _lower(self.since, row)
        self.taken[offset] = row
        if row.outcome is Outcome.ROLLBACK:
            self.back.update(self.taken)
            self.taken.clear()

    def commits(self) -> None:
        """All that was taken is finished."""
        self.taken.clear()
        self.lowest = self.since = self.back[min(self.back)] if self.back else None


def _lower(lowest: Row | None, row: Row) -> Row:
    return row if lowest is None or (row.queue_offset or 0) < (lowest.queue_offset or 0) else lowest


class LaneJudge(IncarnationsJudge[_Incarnation]):
    """Remembers, for each incarnation that was added and not dropped, one message; and what pulls were told."""

    __slots__ = ("corrections", "letters")

    def __init__(self, context: Context) -> None:
        super().__init__(context, _Incarnation)
        self.corrections = Corrections()
        self.letters = UntoldLetters(context)

    def begins(self, row: Row) -> Iterable[Finding]:
        self.corrections.begins(row)
        self.letters.begins(row)
        return super().begins(row)

    def begun(self, known: _Incarnation, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DROP:
            self.incarnations.pop(row.incarnation or "", None)
        elif row.kind is Kind.DELIVER:
            known.manual = is_manual(row)
            known.back.pop(-1 if row.queue_offset is None else row.queue_offset, None)
        elif row.kind is Kind.COMMIT:
            return self._committed(known, row)
        return NOTHING

    def _committed(self, mine: _Incarnation, row: Row) -> Iterable[Finding]:
        lowest, is_correction = (
            mine.lowest if self.letters.told else mine.since,
            self.corrections.has(row),
        )
        if lowest is None or row.value is None or is_correction:
            return NOTHING
        if (lowest.queue_offset or 0) < row.value <= (mine.add.value or 0):
            return NOTHING  # it may report its start
        self.opportunities += 1
        return (
            (MovedWithoutCommit(mine.add, lowest, row),)
            if row.value > (lowest.queue_offset or 0)
            else NOTHING
        )

    def ends(self, row: Row) -> Iterable[Finding]:
        self.corrections.ends(row)
        mine = self.known(row)
        if mine is None or row.queue_offset is None:
            return NOTHING
        if row.kind is Kind.DELIVER:
            if row.outcome in LISTENER_SUSPENDS:
                mine.suspended[row.queue_offset] = is_manual(row)
            else:
                mine.suspended.pop(row.queue_offset, None)
            if acknowledges(row):
                mine.commits()
            elif self.letters.may_take(row):
                mine.since = None
            elif is_manual(row) and row.seq_begin > mine.add.seq_begin:
                mine.takes(row, row.queue_offset)
        elif row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK:
            manual = mine.suspended.pop(row.queue_offset, mine.manual)
            mine.back.pop(row.queue_offset, None)
            if not (manual if row.commit_mode is None else is_manual(row)):
                mine.commits()
        return NOTHING


judge = LaneJudge


def explain(found: MovedWithoutCommit) -> str:
    taken, commit = found.taken, found.commit
    return (
        f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, although the call for offset "
        f"{taken.queue_offset}, begun at {at(taken)} in manual mode, ended in {taken.outcome.upper()} and no call "
        "of it since in COMMIT"
    )
