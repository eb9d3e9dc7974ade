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
from specs.facts.progress import acknowledges, is_answered
from specs.facts.segments import NO_TEXT, NONE
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
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class ProgressAfterDrop(Finding):
    """start: the look-up that says where it started, where the ADD does not."""

    add: Row
    start: Row
    drop: Row
    commit: Row
    finished: int


class Incarnation:
    """One incarnation: the highest offset that it may report, how far it began, its drop.

    roots: the ADD, and the look-up that says where it started where the ADD does not; of an incarnation that may have
    started anywhere there are none. given_up: beyond the highest message that it may have given up without a word.
    asked: look-ups before the drop, less those of which the answer is known.
    """

    __slots__ = ("add", "asked", "delivered", "drop", "finished", "given_up", "lost", "roots")

    def __init__(self, add: Op) -> None:
        self.add = add
        self.roots = [add] if add.value != NONE else []
        self.lost = False
        self.finished = add.value if self.roots else -1
        self.delivered = -1
        self.given_up = -1
        self.drop: Op | None = None
        self.asked: set[int] = set()

    @property
    def is_judged(self) -> bool:
        return bool(self.roots) and not self.asked

    def reached(self, offset: int) -> None:
        self.finished = max(self.finished, offset)

    def started_at(self, look: Op) -> None:
        """A look-up was answered with a stored offset."""
        if not self.roots and not self.lost and look.incarnation != NO_TEXT:
            self.roots = [self.add, look]
        self.reached(look.value)

    def started_anywhere(self) -> None:
        self.roots, self.lost = [], True


class Lane(Machine):
    """The incarnations that were added."""

    ENDS = ends_as([Kind.DELIVER, Kind.FETCH_OFFSET]) | ends_as([Kind.DEAD_LETTER], [Outcome.OK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.incarnations: dict[int, Incarnation] = {}
        self.untold = self.untold_letters()

    def takes(self, stretch: Stretch) -> bool:
        mine = self.incarnations.get(stretch.first.incarnation)
        if mine is None or mine.drop is not None:
            return True
        mine.delivered = max(mine.delivered, stretch.stop)
        if stretch.finished_to > stretch.first.offset:
            mine.reached(stretch.finished_to)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.DEAD_LETTER:
            self.untold = self.context.info.begins_late
        if op.kind is Kind.RESET:
            self.incarnations.clear()
        elif op.kind is Kind.FETCH_OFFSET:
            for each in self._may_ask(op):
                if each.drop is None:
                    each.asked.add(op.place)
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.incarnations[op.incarnation] = Incarnation(op)
        else:
            mine = self.incarnations.get(op.incarnation)
            if mine is None:
                return
            if op.kind is Kind.DROP and mine.drop is None:
                mine.drop = op
                self.stakes += (
                    mine.is_judged and mine.delivered > mine.finished and not self._filters()
                )
            elif op.kind is Kind.DELIVER and op.offset != NONE:
                mine.delivered = max(mine.delivered, op.offset + 1)
            elif op.kind is Kind.COMMIT and op.value != NONE:
                self._committed(mine, op)

    def _committed(self, mine: Incarnation, op: Op) -> None:
        if mine.drop is None:
            mine.reached(op.value)
        elif mine.is_judged and not op.correction and not self._filters():
            if self.untold and mine.finished < op.value <= mine.given_up:
                return
            self.stakes += 1
            if op.value > mine.finished:
                self.broken(
                    ProgressAfterDrop,
                    {"finished": mine.finished},
                    add=mine.add,
                    start=mine.roots[-1],
                    drop=mine.drop,
                    commit=op,
                )

    def _filters(self) -> bool:
        """Has a member told that it passes messages by?"""
        return self.context.is_filtered(self.lane.group, self.now)

    def _may_ask(self, look: Op) -> list[Incarnation]:
        """Who may have looked the offset up: where it is not told, any incarnation of the client."""
        if look.incarnation == NO_TEXT:
            return [each for each in self.incarnations.values() if each.add.client == look.client]
        mine = self.incarnations.get(look.incarnation)
        return [] if mine is None else [mine]

    def _told(self, mine: Incarnation, look: Op) -> None:
        if is_answered(look):
            mine.asked.discard(look.place)
        if mine.drop is not None:
            return
        if look.outcome is Outcome.OK and look.value >= 0:
            mine.started_at(look)
        elif (
            look.outcome is Outcome.REFUSED
            and look.value == -1
            and self.config.consume_from != "first"
        ):
            mine.started_anywhere()

    def ends(self, op: Op) -> None:
        if op.kind is Kind.FETCH_OFFSET:
            for each in self._may_ask(op):
                self._told(each, op)
            return
        mine = self.incarnations.get(op.incarnation)
        if mine is None or op.offset == NONE:
            return
        before = mine.drop is None
        if before and (acknowledges(op) if op.kind is Kind.DELIVER else op.outcome is Outcome.OK):
            mine.reached(op.offset + 1)
        elif before and op.kind is Kind.DELIVER and self.may_be_given_up(op):
            mine.given_up = max(mine.given_up, op.offset + 1)


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: ProgressAfterDrop) -> str:
    drop, commit = found.drop, found.commit
    return (
        f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, after it had dropped the lane at "
        f"{at(drop)}; by then it had come to {found.finished}"
    )
