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

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_FILTER, NO_RESET, ORDERLY
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ends_as,
)
from specs.facts.progress import acknowledges
from specs.facts.segments import NO_TEXT, NONE
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
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class MovedWithoutCommit(Finding):
    """taken: a manual call's message that no COMMIT covered."""

    add: Row
    taken: Row
    commit: Row


class Incarnation:
    """One incarnation: the lowest message that a manual call took and no COMMIT has covered.

    held: what manual calls took since the last COMMIT, and of stretches what lies behind that; back: what a ROLLBACK
    put back, until it is delivered again.
    """

    __slots__ = ("add", "back", "by_hand", "held", "lowest", "manual", "taken_since")

    def __init__(self, add: Op) -> None:
        self.add = add
        self.lowest: Op | None = None
        self.taken_since: Op | None = (
            None  # the lowest since something may have been given up unseen
        )
        self.manual = False
        self.by_hand: dict[int, bool] = {}  # what it suspended, and whether in manual mode
        self.held: list[Op | tuple[Stretch, int]] = []
        self.back: dict[int, Op] = {}

    def clear(self) -> None:
        """All that was taken is committed, but for what was put back."""
        self.held.clear()
        self.lowest = self.taken_since = self.lowest_back

    @property
    def lowest_back(self) -> Op | None:
        return self.back[min(self.back)] if self.back else None

    def worked_on(self, start: int, stop: int) -> None:
        """Calls for these offsets ended, and suspended none of them."""
        if self.back:
            self.back = {each: op for each, op in self.back.items() if not start <= each < stop}
        if self.by_hand:
            self.by_hand = {
                each: manual for each, manual in self.by_hand.items() if not start <= each < stop
            }

    def took(self, op: Op) -> None:
        """A manual call that ended, and did not commit."""
        if self.lowest is None or op.offset < self.lowest.offset:
            self.lowest = op
        if self.taken_since is None or op.offset < self.taken_since.offset:
            self.taken_since = op


class Lane(Machine):
    """The incarnations that were added and not dropped."""

    ENDS = ends_as([Kind.DELIVER]) | ends_as([Kind.DEAD_LETTER], [Outcome.OK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.incarnations: dict[int, Incarnation] = {}
        self.untold = (
            self.untold_letters()
        )  # may messages of the lane have been given up without a word?

    def takes(self, stretch: Stretch) -> bool:
        mine = self.incarnations.get(stretch.first.incarnation)
        if mine is None:
            return True
        mine.manual = stretch.first.manual
        mine.worked_on(stretch.first.offset, stretch.stop)
        covered = stretch.stop if not mine.manual else stretch.finished_to
        if covered > stretch.first.offset:
            mine.clear()
        if covered < stretch.stop:
            mine.held.append((stretch, covered))
            if covered == stretch.first.offset:
                mine.took(stretch.first)
            elif mine.taken_since is None or covered < mine.taken_since.offset:
                mine.took(*self.lane.digest.of_stretch(stretch, covered, covered + 1))
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.DEAD_LETTER:
            self.untold = self.context.info.begins_late
        if op.kind is Kind.RESET:
            self.incarnations.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.incarnations[op.incarnation] = Incarnation(op)
        elif op.kind is Kind.DROP:
            self.incarnations.pop(op.incarnation, None)
        else:
            mine = self.incarnations.get(op.incarnation)
            if mine is None:
                return
            if op.kind is Kind.DELIVER:
                mine.manual = op.manual
                mine.back.pop(op.offset, None)
            elif op.kind is Kind.COMMIT and op.value != NONE and not op.correction:
                self._committed(mine, op)

    def _committed(self, mine: Incarnation, op: Op) -> None:
        lowest = mine.taken_since if self.untold else mine.lowest
        if lowest is None:
            return
        tells_its_start = lowest.offset < op.value <= mine.add.value
        if not tells_its_start:
            self.stakes += 1
            if op.value > lowest.offset:
                self.broken(MovedWithoutCommit, add=mine.add, taken=lowest, commit=op)

    def ends(self, op: Op) -> None:
        mine = self.incarnations.get(op.incarnation)
        if mine is None or op.offset == NONE:
            return
        if op.kind is Kind.DELIVER:
            if op.outcome in LISTENER_SUSPENDS:
                mine.by_hand[op.offset] = op.manual
            else:
                mine.by_hand.pop(op.offset, None)
            if acknowledges(op):
                mine.clear()
            elif self.may_be_given_up(op):
                mine.taken_since = mine.lowest_back
            elif op.manual and mine.add.begin < op.begin:
                mine.took(op)
                mine.held.append(op)
                if op.outcome is Outcome.ROLLBACK:
                    self._put_back(mine)
        elif op.kind is Kind.DEAD_LETTER and op.outcome is Outcome.OK:
            by_hand = mine.by_hand.pop(op.offset, mine.manual)
            mine.back.pop(op.offset, None)
            if not (op.manual if op.has_mode else by_hand):
                mine.clear()

    def _put_back(self, mine: Incarnation) -> None:
        """A ROLLBACK puts back all that was taken."""
        for each in mine.held:
            ops = [each] if isinstance(each, Op) else self.lane.digest.of_stretch(*each)
            mine.back.update((op.offset, op) for op in ops)
        mine.held.clear()


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: MovedWithoutCommit) -> str:
    taken, commit = found.taken, found.commit
    return (
        f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, although the call for offset "
        f"{taken.queue_offset}, begun at {at(taken)} in manual mode, ended in {taken.outcome.upper()} and no call "
        "of it since in COMMIT"
    )
