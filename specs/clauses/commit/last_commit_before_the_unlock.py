"""Whoever gives a lane back has reported all that it finished there before, so that a successor finds it.

When an incarnation unlocks its lane in good order (after a drop, or in a shutdown), the highest offset that its
calls had finished before the drop has been committed: the request is on its way before the unlock is. Whether it
arrives is the network's affair.

Judged where the ADD was seen: whoever records adds records commits. A call that ended after the DROP finished nothing,
and what began before the ADD is of an earlier life; nobody knows what one finished of which the mode is not told,
unless it ended COMMIT. An acknowledged dead letter finishes its message in auto mode, where that was alone in the
incarnation's last call; of a batch the rest may have to come again. What the listener returns its client takes up a
moment later, and not once the lane is dropped: what ended less than `guard_slack_ms` before the DROP, or before the
unlock where no DROP is told, may be finished for nothing (in virtual time that moment is none). A commit that was
refused before the unlock reported nothing; one of which nobody says the value may have reported all that was finished
when it began. Once the incarnation commits a broker's correction (the value that a pull was told to go on at), which
replaces what was finished, or an operator resets the offset, nothing more is asked of it. An unlock that names no
incarnation is of the one that its client has dropped, or gives up in a shutdown, and has not given back, whether or not
its ADD was seen; of two, nobody knows. A commit that names none may be of any of its client's, and so may a drop.

RocketMQ's shutdown frees its leases first, in every version; profiles allow that. So what a client does while it shuts
down its work in the group, or where nobody records who does, is a finding of its own: `released-while-leaving`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ended_before,
    may_be_manual,
)
from specs.facts.progress import certainly_acknowledges
from specs.facts.segments import MS, NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party

ID = "CMT-13"
TITLE = "the last commit goes before the unlock"
STATEMENT = "In a clean release the last commit is sent before the unlock."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#offsets", "docs/sources.md#client-leases")
KINDS = frozenset(
    {
        Kind.ADD,
        Kind.DROP,
        Kind.DELIVER,
        Kind.DEAD_LETTER,
        Kind.COMMIT,
        Kind.PULL,
        Kind.UNLOCK,
        Kind.RESET,
    }
)
NAMED_BY = frozenset({Kind.DEAD_LETTER})
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER, Kind.UNLOCK})
TOLD_OF_REFUSED_COMMITS = True
LOOKS_BACK = True
EXCUSED_BY = frozenset({Kind.CRASH})
SETTINGS = ("guard_slack_ms",)
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class ReleasedFirst(Finding):
    """finished: the highest message that the incarnation had certainly finished, and not reported."""

    add: Row
    finished: Row
    unlock: Row


@dataclass(frozen=True, slots=True)
class ReleasedWhileLeaving(Finding):
    """Likewise, by a client that was, or may have been, shutting down."""

    add: Row
    finished: Row
    unlock: Row


class Incarnation:
    """One incarnation: what it finished before its drop, each higher than those before, and its commits.

    high: the highest offset of these. taken_up: the highest that was old enough when it was dropped.
    committed: the highest value that was not refused. open: the commits without an answer yet. unclear: up to this
    offset a commit without a value may have reported everything. call: the first message of its last call, if that has
    no other; number: of that call.
    """

    __slots__ = (
        "add",
        "call",
        "committed",
        "dropped",
        "finished",
        "high",
        "number",
        "open",
        "taken_up",
        "unclear",
    )

    def __init__(self, add: Op) -> None:
        self.add = add
        self.call: Op | None = None
        self.number = NONE
        self.finished: deque[Op | Stretch] = deque()
        self.high = NONE
        self.taken_up: Op | None = None
        self.committed = -1
        self.open: dict[int, int] = {}
        self.dropped = False
        self.unclear = -1

    def finishes(self, what: Op | Stretch, high: int, over_us: int) -> None:
        """Of what was over by `over_us` the last one is enough: higher ones came later."""
        if high > self.high:
            while len(self.finished) > 1 and _over_us(self.finished[1]) <= over_us:
                self.finished.popleft()
            self.finished.append(what)
            self.high = high


def _over_us(finished: Op | Stretch) -> int:
    return finished.over_us if isinstance(finished, Op) else finished.last.over_us


class Lane(Machine):
    """The incarnations that were added and have not unlocked.

    unjudged: an ADD or a DROP of each of which no more is asked, and which may still be given back.
    """

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.slack_us = self.config.guard_slack_ms * MS
        self.incarnations: dict[int, Incarnation] = {}
        self.unjudged: list[Op] = []

    def takes(self, stretch: Stretch) -> bool:
        mine = self.incarnations.get(stretch.first.incarnation)
        last = stretch.finished_to - 1
        if mine is not None:
            mine.call, mine.number = None, stretch.last.op  # none of these was given up
        if mine is None or mine.dropped or last < stretch.first.offset:
            return True
        if not stretch.first.has_mode:  # what its calls finished each of them says
            return False
        mine.finishes(stretch, last, stretch.last.over_us - self.slack_us)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.UNLOCK:
            self._unlocked(op)
        elif op.kind is Kind.RESET:
            self._set_aside([*self.incarnations])
        elif op.kind is Kind.COMMIT:
            self._commits(op)
        elif op.kind is Kind.DELIVER:
            mine = self.incarnations.get(op.incarnation)
            if mine is not None:
                mine.call = op if mine.number != op.op else None
                mine.number = op.op
        elif op.kind is Kind.DROP:
            self._dropped(op)
        elif op.kind is Kind.ADD and op.incarnation != NO_TEXT:
            self.incarnations[op.incarnation] = Incarnation(op)
            self._settled(op.incarnation)
        elif op.kind is Kind.ADD:
            self.unjudged.append(op)

    def _commits(self, op: Op) -> None:
        for code in self._named(op):
            mine = self.incarnations[code]
            if op.correction:
                self._set_aside([code])
            elif op.value != NONE:
                mine.open[op.place] = op.value
            else:
                mine.unclear = mine.high

    def _dropped(self, op: Op) -> None:
        codes = self._named(op)
        if codes and op.incarnation != NO_TEXT:
            self._stops(self.incarnations[op.incarnation], op)
        elif codes:
            self._set_aside(codes)
        elif op.incarnation == NO_TEXT or op.incarnation not in {
            each.incarnation for each in self.unjudged
        }:
            self.unjudged.append(op)

    def _stops(self, mine: Incarnation, op: Op) -> None:
        """Dropped, or given back: what ended a moment ago may not be taken up any more."""
        if mine.dropped:
            return
        mine.dropped = True
        until_us = op.started - self.slack_us
        taken_up = [self._by(each, until_us) for each in mine.finished]
        mine.taken_up = max(
            (each for each in taken_up if each is not None),
            key=lambda each: each.offset,
            default=None,
        )
        mine.finished.clear()

    def _by(self, finished: Op | Stretch, until_us: int) -> Op | None:
        if isinstance(finished, Stretch):
            return self.lane.digest.finished_by(finished, until_us)
        return finished if finished.over_us <= until_us else None

    def _named(self, op: Op) -> list[int]:
        """Whose it may be: without a name, of whatever its client has there."""
        if op.incarnation != NO_TEXT:
            return [op.incarnation] if op.incarnation in self.incarnations else []
        return [code for code, each in self.incarnations.items() if each.add.client == op.client]

    def _set_aside(self, codes: list[int]) -> None:
        self.unjudged += [self.incarnations.pop(code).add for code in codes]

    def _settled(self, code: int) -> None:
        """The incarnation was given back, or begins anew."""
        self.unjudged = [each for each in self.unjudged if each.incarnation != code]

    def _unlocked(self, op: Op) -> None:
        leaving = self.may_be_leaving(op.client)
        code = self._only_one(op, leaving) if op.incarnation == NO_TEXT else op.incarnation
        if code is None:
            return
        self._settled(code)
        mine = self.incarnations.pop(code, None)
        if mine is None:
            return
        self._stops(mine, op)
        if mine.taken_up is None or mine.taken_up.offset <= mine.unclear:
            return
        self.stakes += 1
        if max([mine.committed, *mine.open.values()]) <= mine.taken_up.offset:
            kind = ReleasedWhileLeaving if leaving else ReleasedFirst
            self.broken(kind, add=mine.add, finished=mine.taken_up, unlock=op)

    def _only_one(self, op: Op, leaving: bool) -> int | None:
        """The incarnation that an unlock without a name must mean: none where there are two to choose from."""
        codes = [code for code, each in self.incarnations.items() if self._lives(op, each.add)]
        if len(codes) == 1 and not any(self._lives(op, each) for each in self.unjudged):
            return codes[0] if leaving or self.incarnations[codes[0]].dropped else None
        self._set_aside(codes)
        # One of them it is, so that one fewer is left.
        first = next((at for at, each in enumerate(self.unjudged) if self._lives(op, each)), None)
        if first is not None:
            del self.unjudged[first]
        return None

    def _lives(self, op: Op, told: Op) -> bool:
        return told.client == op.client and not self.is_of_an_old_life(op.client, told)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.COMMIT:
            for known in self.incarnations.values():
                value = known.open.pop(op.place, None)
                if value is not None and op.outcome is not Outcome.REFUSED:
                    known.committed = max(known.committed, value)
            return
        mine = self.incarnations.get(op.incarnation)
        if mine is None or mine.dropped or op.offset == NONE or op.begin < mine.add.begin:
            return
        if op.kind is Kind.DELIVER:
            is_finished = certainly_acknowledges(op)
        else:
            is_finished = op.kind is Kind.DEAD_LETTER and self._gives_up(mine.call, op)
        if not is_finished:
            return
        mine.finishes(op, op.offset, op.over_us - self.slack_us)

    @staticmethod
    def _gives_up(call: Op | None, letter: Op) -> bool:
        """Does the dead letter finish the call, which had one message, for certain?"""
        if call is None or letter.outcome is not Outcome.OK or letter.manual:
            return False
        by_itself = call.outcome in LISTENER_SUSPENDS and not may_be_manual(call)
        return by_itself and call.offset == letter.offset and ended_before(call, letter)


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: ReleasedFirst | ReleasedWhileLeaving) -> str:
    finished, unlock = found.finished, found.unlock
    return (
        f"{who(unlock)} gave {unlock.lane} back at {at(unlock)} without having committed "
        f"{(finished.queue_offset or 0) + 1}: offset {finished.queue_offset}, begun at {at(finished)}, was finished"
    )
