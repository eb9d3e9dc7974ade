"""What was committed longer than one persist interval before a broker's crash is still stored after it.

The broker writes its offsets to disk each persist interval, the first time after the first persist delay, both of its
own (`broker_persist_ms`, `broker_persist_first_ms`) where it does not write as often as its clients report. So a
commit that was answered, followed by the longer of the two (and the slack of a timer) without a crash, is on the
disk. One interval (and the slack) is enough where the broker had answered somebody about the lane so long before the
commit that its first write was over. When the broker crashes later and somebody then asks for the offset, the answer
is not below that commit, nor below any commit that may have been applied after it, however late. "Nothing stored" is
below every offset. A commit that was refused is none. In a closed world the answer is one of these values.

A reset that was answered is stored like a commit. After a reset only resets are taken for certainly stored: a broker
that keeps a reset itself lets no commit undo it until the group pulls again.

The other half of the interval is the client's, who reports what it finished each persist interval: CMT-2 has that, and
so this clause is the broker's alone. Not claimed where the broker was paused since that commit (its timer stood still)
or its disk was filled before the look-up (it can't write then), where "nothing stored" is answered and such a commit
lay at or below what the queue still keeps (brokers remove what is left of a group that nobody works in), where a new
epoch tells of a death of which nobody knows when it was, where nobody says what a commit that may have been applied
after it stored (a raw request may tell no value), nor on a lane whose offset was reset to nobody knows where, or
by its clients (the 4.9 line).
Where not everybody is recorded, and the history may begin in the middle, nothing is said of commits that began within
the bound for delays from the lane's first row on. Where so many commits come that not all of them can be remembered,
only newer ones are judged.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from specs.clauses.commit.fetch_answers_the_last_commit import answered_offset
from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_NOT_PAUSED, NO_RESET
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, each_lane
from specs.facts.segments import MS, NONE
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-7"
TITLE = "a crash loses one interval"
STATEMENT = "A broker's crash loses at most the commits, and resets, of one persist interval."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_RESET, BROKER_NOT_PAUSED)
SOURCES = ("docs/sources.md#offsets",)
STAKES = (Stake(Trait.BROKER_KILL),)
KINDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET})
SETTINGS = (
    "broker_persist_first_ms",
    "broker_persist_ms",
    "dialect",
    "persist_first_ms",
    "persist_ms",
)
NEEDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET})
TOLD_OF_REFUSED_COMMITS = True
EXCUSED_BY = frozenset({Kind.FAULT, Kind.TRIM})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class LostInCrash(Finding):
    """first: what shows that the broker, or the history, had begun so long before. interval_ms: what may be lost."""

    first: Row | None
    commit: Row
    death: Row
    answer: Row
    interval_ms: int


REMEMBERED_MAX = 4_096


class Lane(Machine):
    """The acknowledged commits of about one interval, and all commits that may follow the oldest of them."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        config, clocks_us = self.config, self.context.info.clock_bound_us
        slack_us = config.schedule_slack_ms * MS + clocks_us
        self.start_us = config.stored_first_ms * MS + slack_us
        self.short_us = config.stored_each_ms * MS + slack_us
        self.long_us = max(self.start_us, self.short_us)
        self.bound_us = config.delay_bound_ms * MS + clocks_us
        self.deaths = self.context.broker_deaths.get(self.broker, ())
        self.epochs = self.context.epoch_deaths(self.broker)
        self.first: Op | None = None
        self.alive: Op | None = None  # the first answer of the broker's present life
        self.answered: deque[tuple[Op, Op]] = (
            deque()
        )  # with the first answer of the life in which it was given
        self.later: deque[Op] = deque()
        self.floor_us = -1
        self.only_resets = False
        self.was_reset = False

    def begins(self, op: Op) -> None:
        if self.first is None:
            self.first = op
            self.floor_us = -1 if self.context.info.closed_world else op.started + self.bound_us
        if op.kind is Kind.RESET:
            self.only_resets = True
            self.was_reset = self.was_reset or op.value == NONE or self.config.dialect == "4.9"
        moves = op.kind is not Kind.FETCH_OFFSET and op.outcome is not Outcome.REFUSED
        if moves and not self.was_reset:
            self.later.append(op)
            if len(self.later) > REMEMBERED_MAX:
                self.floor_us = max(self.floor_us, self._until(self.later.popleft()))
                while self.answered and self.answered[0][0].started <= self.floor_us:
                    self.answered.popleft()

    def ends(self, op: Op) -> None:
        if self.was_reset:
            return
        if op.outcome in (Outcome.OK, Outcome.REFUSED) and (
            self.alive is None or self.broker_died_since(self.alive)
        ):
            self.alive = None if self.broker_died_since(op) else op
        if op.kind is Kind.FETCH_OFFSET:
            self._asked(op)
        elif self.only_resets and op.kind is Kind.COMMIT:
            return  # the broker may have held it off
        elif (
            op.outcome is Outcome.OK
            and op.value != NONE
            and op.started > self.floor_us
            and self.alive is not None
        ):
            self.answered.append((op, self.alive))
            self._settle(op)

    def _until(self, commit: Op) -> int:
        until = max(commit.over_us, commit.started + self.bound_us)
        return self.may_arrive_until(commit, until)

    def _settle(self, now: Op) -> None:
        answered, old_us, spare = self.answered, now.ended - self.long_us, 0
        for index in range(1, len(answered)):
            commit = answered[index][0]
            if commit.ended > old_us:
                break
            if not self._undone(commit, self.long_us):
                spare = index
        for _ in range(spare):
            answered.popleft()
        while self.later and self._until(self.later[0]) < answered[0][0].started:
            self.later.popleft()

    def _undone(self, commit: Op, interval_us: int) -> bool:
        """Did the broker die, up to now, before the commit was certainly on its disk?"""
        if any(commit.begin < seq <= self.now for seq in self.epochs):
            return True
        until = commit.ended + interval_us
        return any(commit.begin < seq <= self.now and at < until for seq, at in self.deaths)

    def _written_after(self, commit: Op, alive: Op) -> int:
        """How long after the commit it is on disk."""
        return self.short_us if alive.ended + self.start_us <= commit.started else self.long_us

    def _asked(self, op: Op) -> None:
        answer = answered_offset(op)
        crash = next(((seq, at) for seq, at in reversed(self.deaths) if seq < op.begin), None)
        if crash is None or answer is None:
            return
        found = next(
            (each for each in reversed(self.answered) if self._is_written(*each, *crash)), None
        )
        if found is None:
            return
        commit, alive = found
        if self.context.broker_paused_since(self.broker, commit.started - self.bound_us, self.now):
            return
        values = {
            commit.value,
            *(each.value for each in self.later if self._until(each) >= commit.started),
        }
        lowest = min(values)  # below 0 where nobody says what one of them stored
        if lowest < 0 or self.context.is_crowded(self.broker, self.now):
            return
        if answer < 0 and self.keeps_nothing_before(lowest):
            return
        self.stakes += 1
        if answer not in values if self.context.info.closed_world else answer < lowest:
            first = None if self.context.info.closed_world else self.first
            if commit.ended + self.long_us > crash[1]:
                first = alive
            self.broken(
                LostInCrash,
                {"interval_ms": self._written_after(commit, alive) // MS},
                of_context={"death": crash[0]},
                first=first,
                commit=commit,
                answer=op,
            )

    def _is_written(self, commit: Op, alive: Op, crash_seq: int, crash_us: int) -> bool:
        interval_us = self._written_after(commit, alive)
        in_time = commit.ended + interval_us <= crash_us
        return in_time and commit.begin < crash_seq and not self._undone(commit, interval_us)


judge = each_lane(Lane, (Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET), lease=False)


def explain(found: LostInCrash) -> str:
    commit, crash, answer = found.commit, found.death, found.answer
    told = "that nothing was stored" if answered_offset(answer) == -1 else f"{answer.value}"
    did = "reset it to" if commit.kind is Kind.RESET else "committed"
    return (
        f"{who(answer)} asked at {at(answer)} for the offset stored for {answer.lane} and heard {told}; "
        f"{who(commit)} had {did} {commit.value} {ms(crash.started_us - over_us(commit))} before "
        f"{crash.broker} crashed at {at(crash)}, and at most {found.interval_ms} ms may be lost"
    )
