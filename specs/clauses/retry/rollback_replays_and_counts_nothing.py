"""A manual ROLLBACK replays everything taken and not committed, and counts nothing.

In manual mode a SUCCESS leaves its messages taken until a COMMIT. A ROLLBACK puts them all back, with its own batch:
(a) until each of them has come again, no call of the incarnation delivers anything beyond the lowest that has not, and
(b) each of them carries, when it comes again, the retry counter that it carried before. An auto call that acknowledges,
or whose message is given up, commits all that was taken as well; so may a call of which nobody knows how it ended.
After a message was given up in manual mode, or may have been where nobody saw it, nothing is claimed of what was taken
before it. Nor is anything claimed of a call that ended after the next one had begun, or by one that began before the
ROLLBACK's had ended. Nothing is remembered across an ADD or a reset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import acknowledges, ended_before, is_manual, may_be_given_up, over_us
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_RESULTS, LISTENER_SUSPENDS, Key, Kind, Outcome, Party

ID = "RTY-9"
TITLE = "a manual ROLLBACK replays all that was taken"
STATEMENT = (
    "A ROLLBACK in manual mode replays all that was taken and not committed, and counts no retry."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.ROLLBACK),)
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class NotReplayed(Finding):
    """taken: the lowest message that had to come before, or the one whose counter moved (counted)."""

    taken: Row
    rollback: Row
    next: Row
    counted: bool


class _Incarnation:
    """taken: delivered, ended well or rolled back, not committed. replay: what a ROLLBACK put back, still to come.

    exhausted: the highest offset of a suspended message whose retries were used up; once something beyond is
    delivered, it may have been given up.
    """

    __slots__ = ("exhausted", "op", "replay", "rollback", "taken")

    def __init__(self) -> None:
        self.op = -1
        self.taken: dict[int, Row] = {}
        self.rollback: Row | None = None
        self.replay: dict[int, tuple[Row, Row]] = {}
        self.exhausted: int | None = None

    def commit(self) -> None:
        self.taken.clear()
        self.rollback = None


class LaneJudge(Judge):
    """Remembers what each incarnation has taken and not committed."""

    __slots__ = ("incarnations",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.incarnations: dict[str, _Incarnation] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.RESET:
            self.incarnations.clear()
        elif row.incarnation is None:
            return NOTHING
        elif row.kind is Kind.ADD:
            self.incarnations.pop(row.incarnation, None)
        elif row.kind is Kind.DELIVER and row.queue_offset is not None:
            mine = self.incarnations.get(row.incarnation)
            if mine is None:
                mine = self.incarnations[row.incarnation] = _Incarnation()
            if row.op_id != mine.op:
                self._next_call(mine, row, row.queue_offset)
            found = [
                *self._passed(mine, row, row.queue_offset),
                *self._counter(mine, row, row.queue_offset),
            ]
            if row.outcome not in LISTENER_RESULTS:  # it may have ended in a COMMIT
                mine.commit()
            return found
        return NOTHING

    def _next_call(self, mine: _Incarnation, row: Row, offset: int) -> None:
        mine.op = row.op_id
        if mine.exhausted is not None:
            if offset > mine.exhausted:
                mine.commit()
            mine.exhausted = None
        rollback = mine.rollback
        if rollback is not None:
            mine.replay.update((each, (taken, rollback)) for each, taken in mine.taken.items())
            mine.commit()

    def _passed(self, mine: _Incarnation, row: Row, offset: int) -> Iterable[Finding]:
        """Is something that was put back left behind? Told once."""
        passed = sorted(each for each in mine.replay if each < offset)
        if passed:
            taken, rollback = mine.replay[passed[0]]
            for each in passed:
                del mine.replay[each]
            if ended_before(rollback, row):
                self.opportunities += 1
                yield NotReplayed(taken, rollback, row, counted=False)

    def _counter(self, mine: _Incarnation, row: Row, offset: int) -> Iterable[Finding]:
        put_back = mine.replay.pop(offset, None)
        if put_back is None:
            return
        self.opportunities += 1
        before, rollback = put_back
        if before.reconsume_times is None or row.reconsume_times is None:
            return
        if row.reconsume_times != before.reconsume_times and ended_before(rollback, row):
            yield NotReplayed(before, rollback, row, counted=True)

    def ends(self, row: Row) -> Iterable[Finding]:
        mine = self.incarnations.get(row.incarnation or "")
        if mine is None or row.queue_offset is None:
            return NOTHING
        if row.kind is Kind.DEAD_LETTER:
            if (
                row.outcome is Outcome.OK
            ):  # in auto mode this commits, as an acknowledging call does
                mine.commit()
        elif acknowledges(row):
            mine.commit()
        elif (
            is_manual(row)
            and row.outcome in (Outcome.SUCCESS, Outcome.ROLLBACK)
            and row.op_id == mine.op
        ):
            mine.taken[row.queue_offset] = row
            if row.outcome is Outcome.ROLLBACK:
                mine.rollback = row
        elif row.outcome in LISTENER_SUSPENDS and may_be_given_up(row, self.config):
            mine.exhausted = max(row.queue_offset, -1 if mine.exhausted is None else mine.exhausted)
        return NOTHING


judge = LaneJudge


def explain(found: NotReplayed) -> str:
    taken, new, rollback = found.taken, found.next, found.rollback
    said = f"the ROLLBACK that ended at {over_us(rollback) / 1_000_000:.3f} s"
    if found.counted:
        return (
            f"{who(new)} delivered offset {new.queue_offset} of {new.lane} at {at(new)} as retry "
            f"{new.reconsume_times}; it was retry {taken.reconsume_times} before {said}, which counts nothing"
        )
    return (
        f"{who(new)} delivered offset {new.queue_offset} of {new.lane} at {at(new)}, although {said} had put offset "
        f"{taken.queue_offset} back, which was taken and not committed and has not come again"
    )
