"""An operator's reset is not undone by a commit that was under way.

Somebody sets the offset of a group back, or ahead, while its members work and report as they always do. Two halves:

(a) The broker's. From the answer to a reset until the group pulls from the queue again, whoever asks for the stored
offset hears the reset's value, although a commit was, or may have been, applied after it. Only look-ups are judged
at which such a commit was in flight: one that began before the look-up ended and may have been applied when the
reset began or later (until its answer, and within the bound for delays after it was sent). The next pull takes the
reset, and with it the protection; it may have come from anybody who pulled, or whose pull was parked, since then.
So nothing is said any more where a pull of the group may have reached the broker, or waited there, since the reset
began. Values of other resets that may have been applied after it are as good, and where nobody says the value of one,
nothing is said.

(b) The client's. An incarnation whose pull was answered "offset moved" with the reset's value, before it was dropped
and before its client began to shut down, commits no other value afterwards: what it had taken until then counts for
nothing. Its timer may report what it knows while the answer is taken up (`guard_slack_ms`; nothing in virtual time),
and so may a client that shuts down meanwhile. A client may go on at the new offset in the same incarnation: then what
it pulled from there on is its to commit, up to the end of what those pulls brought, or found nothing of and passed by.
Once it is told to go on elsewhere again, or looks the stored offset up, nothing is held against it any more; a look-up
that names no incarnation is one of each incarnation of its client.

Nothing is said across a crash of the broker (resets that stand live in its memory), nor where it was paused (requests
may have waited in its socket for longer than the bound). That the group goes on at the new offset is not promised: an
old commit may still arrive after the pull that took the reset.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from specs.clauses.commit.fetch_answers_the_last_commit import answered_offset
from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, CLOSED_WORLD, Premise
from specs.clauses.rows import NOTHING_HERE, OFFSET_MOVED
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, each_lane, ends_as
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-11"
TITLE = "a reset wins over a commit in flight"
STATEMENT = "A reset of the offset wins over a commit in flight, until the group has pulled again."
PARTY = Party.PAIR
KEY = Key.LANE
RESETS_ARE_THE_BROKERS = Premise(
    "a reset is the broker's",
    "the broker keeps a reset itself: the 4.9 line leaves it to the clients, and a commit in flight overwrites it",
    lambda info: info.config.dialect != "4.9",
    settings=frozenset({"dialect"}),
)
NOTHING_LATE = Premise(
    "nothing late",
    "requests that a fault held back count as under way until it ends, and a client that shuts down may report the old",
    told_by=frozenset({Kind.FAULT, Kind.LEAVE}),
)
PREMISE = (CLOSED_WORLD, BROKER_LIVES, BROKER_NOT_PAUSED, NOTHING_LATE, RESETS_ARE_THE_BROKERS)
SOURCES = ("docs/sources.md#offsets",)
STAKES = (Stake(Trait.RESET),)
KINDS = frozenset({Kind.RESET, Kind.COMMIT, Kind.FETCH_OFFSET, Kind.PULL, Kind.ADD, Kind.DROP})
SETTINGS = ("guard_slack_ms", "long_poll_ms")
NEEDS = frozenset({Kind.FETCH_OFFSET, Kind.RESET})
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class Overwritten(Finding):
    commit: Row
    reset: Row
    answer: Row


@dataclass(frozen=True, slots=True)
class CommittedTheOld(Finding):
    reset: Row
    pull: Row
    commit: Row


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
                self.broken(CommittedTheOld, reset=reset, pull=pull, commit=op)

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
            self.broken(Overwritten, commit=named[-1], reset=reset, answer=op)


judge = each_lane(Lane, KINDS, lease=False, asides=(Kind.PULL,))


def explain(found: Overwritten | CommittedTheOld) -> str:
    commit, reset = found.commit, found.reset
    if isinstance(found, CommittedTheOld):
        return (
            f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, though its pull had been told "
            f"at {at(found.pull)} to go on at {found.pull.value}, to which the offset had been reset at {at(reset)}"
        )
    answer = found.answer
    told = "that nothing was stored" if answered_offset(answer) == -1 else str(answer.value)
    return (
        f"{who(answer)} asked at {at(answer)} for the offset stored for {answer.lane} and heard {told}, though it had "
        f"been reset to {reset.value} at {at(reset)} and nobody pulled since; {who(commit)} had committed "
        f"{commit.value} at {at(commit)}"
    )
