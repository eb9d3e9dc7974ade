"""CMT-11 over columns: resets, commits and look-ups one by one; of the pulls, which are many, only their begins."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.clauses.commit.fetch_answers_the_last_commit import answered_offset
from spark_checkers.planting import STRANGER, Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, ends_as, machine_kernel
from specs.facts.rows import NOTHING_HERE, OFFSET_MOVED
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

REMEMBERED_MAX = 64


class Lane(Machine):
    """What was reset and committed last, the questions under way, and what pulls may have taken."""

    ENDS = ends_as([Kind.RESET, Kind.FETCH_OFFSET])
    STAKE = Kind.RESET

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.bound = self.config.delay_bound_ms * MS + self.context.info.clock_bound_us
        self.parked = self.bound + self.config.long_poll_ms * MS
        self.last: Op | None = None
        self.resets: deque[Op] = deque(maxlen=REMEMBERED_MAX)
        self.commits: deque[Op] = deque(maxlen=REMEMBERED_MAX)
        self.pulled_until = -1
        self.asked: dict[int, Op] = {}
        self.dropped: dict[int, int] = {}  # by incarnation: the seq of its drop
        self.told: dict[
            int, list[Op]
        ] = {}  # by incarnation: pulls that are, or will be, told to go on elsewhere
        self.pulls: dict[
            int, list[Op]
        ] = {}  # by incarnation: those that went on, and began after one of those
        self.looked: dict[int, int] = {}  # by incarnation: when it looked the offset up last
        self.someone: dict[int, int] = {}  # by client: when one of its incarnations did

    def begins(self, op: Op) -> None:
        if op.kind is Kind.PULL:
            self.pulled_until = max(self.pulled_until, self._until(op, self.parked))
            if op.incarnation == NO_TEXT or op.value == NONE:
                return
            if op.code == OFFSET_MOVED or (op.code == NONE and op.value < op.offset):
                self.told.setdefault(op.incarnation, []).append(op)
            elif (
                op.incarnation in self.told
                and op.offset != NONE
                and (op.outcome is Outcome.OK or (op.code in NOTHING_HERE and op.value > op.offset))
            ):
                self.pulls.setdefault(op.incarnation, []).append(op)
        elif op.kind is Kind.RESET:
            self.resets.append(op)
            self.pulls.clear()
            for mine in tuple(self.told):
                self._keep_open(mine, op)
        elif op.kind is Kind.FETCH_OFFSET:
            self._looks_up(op)
            if self.last is not None:
                self.asked[op.place] = self.last
        elif op.kind is Kind.ADD:
            self.dropped.pop(op.incarnation, None)
            self._keep_open(op.incarnation, op)
            self.pulls.pop(op.incarnation, None)
        elif op.kind is Kind.DROP:
            self.dropped.setdefault(op.incarnation, op.begin)
        elif op.value != NONE:
            self.commits.append(op)
            self._committed(op)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            is_later = self.last is None or op.begin > self.last.begin
            if op.outcome is Outcome.OK and op.value != NONE and is_later:
                self.last = op
        elif op.kind is Kind.FETCH_OFFSET:
            self._looks_up(op)
            self._answered(op)

    def _looks_up(self, op: Op) -> None:
        """From here on its incarnation may be where the answer says."""
        if op.incarnation == NO_TEXT:
            self.someone[op.client] = self.now
        else:
            self.looked[op.incarnation] = self.now

    def _keep_open(self, mine: int, op: Op) -> None:
        """Of an incarnation's pulls only those that are answered after this count from here on."""
        pulls = [pull for pull in self.told.pop(mine, ()) if pull.end > op.begin]
        if pulls:
            self.told[mine] = pulls

    def _committed(self, op: Op) -> None:
        if op.incarnation == NO_TEXT or not self.resets:
            return
        reset = self.resets[-1]
        told = [
            pull for pull in self.told.get(op.incarnation, ()) if reset.begin < pull.end < op.begin
        ]
        pulls = [
            pull
            for pull in told
            if pull.value == reset.value
            and pull.code == OFFSET_MOVED
            and self.dropped.get(op.incarnation, NEVER) > pull.end
            and not self.context.leaving_at(self.lane.name(pull.client), self.lane.group, pull.end)
        ]
        if pulls:
            pull = max(pulls, key=lambda each: each.end)
            elsewhere = [each.end for each in told if each.value != reset.value]
            looked = self.looked.get(op.incarnation, -1), self.someone.get(pull.client, -1)
            if max(*elsewhere, *looked) > pull.end:
                return
            at_once = op.started < pull.over_us + self.config.guard_slack_ms * MS
            if at_once or self.leaving(op.client):
                return
            self.stakes += 1
            later = [
                each
                for each in self.pulls.get(op.incarnation, ())
                if pull.end < each.begin and each.end < op.begin
            ]
            brought = [each.value for each in later if each.offset >= pull.value]
            if not pull.value <= op.value <= max(brought, default=pull.value):
                self.found(reset, pull, op, name="committed-the-old")

    def _until(self, op: Op, bound: int) -> int:
        return self.may_arrive_until(op, max(op.over_us, op.started + bound))

    def _answered(self, op: Op) -> None:
        reset, answer = self.asked.pop(op.place, None), answered_offset(op)
        if reset is None or answer is None or self.pulled_until >= reset.started:
            return
        if len(self.resets) == REMEMBERED_MAX and self.resets[0].begin >= reset.begin:
            return
        since = reset.started - self.parked
        if self.broker_died_since(reset) or self.context.broker_paused_since(
            self.broker, since, self.now
        ):
            return
        in_flight = [
            each for each in self.commits if self._until(each, self.bound) >= reset.started
        ]
        as_good = [
            each.value for each in self.resets if self._until(each, self.bound) >= reset.started
        ]
        if not in_flight or NONE in as_good:
            return
        self.stakes += 1
        if answer not in as_good:
            named = [each for each in in_flight if each.value == answer] or in_flight
            self.found(named[-1], reset, op)


_KINDS = (Kind.RESET, Kind.COMMIT, Kind.FETCH_OFFSET, Kind.ADD, Kind.DROP)
TWIN = Twin("CMT-11", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False, asides=(Kind.PULL,)))
find = TWIN.find


# ---- what breaks the clause, planted


def reset_overwritten(trace: Trace) -> Changes:
    """In a group of its own an operator resets, somebody commits, and a look-up answers the commit."""
    for commit in planting.acknowledged(trace):
        yield partial(lambda c: _reset_of_strangers(trace, c, won=False), commit)


def reset_in_flight(trace: Trace) -> Changes:
    for commit in planting.acknowledged(trace):
        yield partial(lambda c: _reset_of_strangers(trace, c, won=True), commit)


def _reset_of_strangers(trace: Trace, commit: Row, *, won: bool) -> Planted:
    value = commit.value or 0
    nobodys: dict[str, Any] = {"group": STRANGER, "client_id": STRANGER, "process": STRANGER}
    reset = planting.looked_up(trace, commit, commit, 1, value + 1)._replace(
        kind=Kind.RESET, **nobodys
    )
    again = planting.looked_up(trace, commit, commit, 2, value)._replace(
        kind=Kind.COMMIT, **nobodys
    )
    asked = planting.looked_up(trace, commit, commit, 3, value + 1 if won else value)._replace(
        **nobodys
    )
    return trace.with_more([reset, again, asked])


DEFECTS = (
    Mutant("reset-overwritten", "CMT-11", "a commit in flight undoes a reset", reset_overwritten),
)

LOOKALIKES = (
    Mutant("reset-in-flight", None, "a commit comes after a reset, which wins", reset_in_flight),
)
