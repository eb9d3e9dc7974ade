"""CMT-13 over columns: of a stretch only the last message matters that it had finished a moment before the end."""

from __future__ import annotations

from collections import deque
from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ended_before,
    machine_kernel,
    may_be_manual,
)
from specs.facts.progress import certainly_acknowledges
from specs.facts.segments import MS, NO_TEXT, NONE
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome


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
            self.found(
                mine.add, mine.taken_up, op, name="released-while-leaving" if leaving else None
            )

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


_KINDS = (
    Kind.ADD,
    Kind.DROP,
    Kind.DELIVER,
    Kind.DEAD_LETTER,
    Kind.COMMIT,
    Kind.UNLOCK,
    Kind.RESET,
)
TWIN = Twin("CMT-13", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def released_without_a_commit(trace: Trace) -> Changes:
    for rows in trace.works:
        unlock = next((row for row in rows if row.kind is Kind.UNLOCK), None)
        finished = planting.finished(rows)
        if (
            unlock is None
            or not finished
            or any(row.detail for row in rows if row.kind is Kind.COMMIT)
        ):
            continue
        last = max(finished, key=lambda row: row.queue_offset or 0)
        told = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and (row.value or 0) > (last.queue_offset or 0)
        ]
        if told and all(row.seq_begin < unlock.seq_begin for row in told):
            gone, about = [row.seq_begin for row in told], (last.seq_begin, unlock.seq_begin)
            yield partial(trace.without, gone, about)


DEFECTS = (
    Mutant(
        "released-without-a-commit",
        "CMT-13",
        "a lane is given back unreported",
        released_without_a_commit,
    ),
)
