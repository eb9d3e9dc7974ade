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
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.commit.fetch_answers_the_last_commit import answered_offset
from specs.clauses.context import Context
from specs.clauses.incarnations import OFFSET_MOVED, goes_ahead, may_go_back
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, CLOSED_WORLD, Premise
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import MS, at, who
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

REMEMBERED_MAX = 64
"""Of commits, and of resets: older ones are forgotten."""


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


class LaneJudge(Judge):
    """Remembers the last acknowledged reset, those that may be applied after it, commits, and until when pulls may
    reach the broker."""

    __slots__ = (
        "asked",
        "bound_us",
        "commits",
        "dropped",
        "last",
        "moved",
        "newest",
        "parked_us",
        "pulled_until_us",
        "reached",
        "resets",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.bound_us = self.config.delay_bound_ms * MS + context.info.clock_bound_us
        self.parked_us = self.bound_us + self.config.long_poll_ms * MS
        self.last: Row | None = None  # the acknowledged reset that began last
        self.newest: Row | None = None  # the reset that began last
        self.resets: deque[Row] = deque(maxlen=REMEMBERED_MAX)
        self.commits: deque[Row] = deque(maxlen=REMEMBERED_MAX)
        self.pulled_until_us = -1  # until when some pull may reach the broker, or wait there
        self.asked: dict[int, Row] = {}  # by the look-up's seq: the last reset then
        self.dropped: set[str] = set()  # incarnations
        self.moved: dict[str, Row] = {}  # by incarnation: the pull that told it the newest reset
        self.reached: dict[str, int] = {}  # by incarnation: the end of what it pulled from there on

    def begins(self, row: Row) -> Iterable[Finding]:
        match row.kind:
            case Kind.RESET:
                self.newest = row
                self.resets.append(row)
                self.moved.clear()
                self.reached.clear()
            case Kind.PULL:
                until_us = max(over_us(row), row.started_us + self.parked_us)
                until_us = self.context.may_arrive_until(row, until_us)
                self.pulled_until_us = max(self.pulled_until_us, until_us)
            case Kind.FETCH_OFFSET:
                self._looks_up(row)
                if self.last is not None:
                    self.asked[row.seq_begin] = self.last
            case Kind.COMMIT if row.value is not None:
                self.commits.append(row)
                return self._committed(row)
            case Kind.ADD:
                self.dropped.discard(row.incarnation or "")
                self.moved.pop(row.incarnation or "", None)
            case Kind.DROP:
                self.dropped.add(row.incarnation or "")
            case _:
                pass
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        match row.kind:
            case Kind.RESET if row.outcome is Outcome.OK and row.value is not None:
                if self.last is None or row.seq_begin > self.last.seq_begin:
                    self.last = row
            case Kind.PULL if row.code == OFFSET_MOVED or may_go_back(row):
                self._told(row)
            case Kind.PULL if row.outcome is Outcome.OK or goes_ahead(row):
                self._went_on(row)
            case Kind.FETCH_OFFSET:
                self._looks_up(row)
                return self._answered(row)
            case _:
                pass
        return NOTHING

    # ------------------------------------------------------------ the client's half

    def _told(self, pull: Row) -> None:
        """A pull was told to go on elsewhere: where the offset was reset to, or anywhere else."""
        mine, reset = pull.incarnation, self.newest
        if mine is None or pull.value is None or reset is None:
            return
        if pull.value != reset.value:
            self.moved.pop(mine, None)
        elif (
            pull.code == OFFSET_MOVED
            and mine not in self.dropped
            and not self.context.is_leaving(pull.client_id, pull.group)
        ):
            self.moved[mine] = pull
            self.reached.pop(mine, None)

    def _looks_up(self, row: Row) -> None:
        """A look-up begins or ends: whoever makes it may go on at what it hears."""
        if row.incarnation is not None:
            self.moved.pop(row.incarnation, None)
            return
        of_client = [mine for mine, pull in self.moved.items() if pull.client_id == row.client_id]
        for mine in of_client:
            del self.moved[mine]

    def _went_on(self, pull: Row) -> None:
        """An incarnation goes on where it was told to, and reports what it takes from there."""
        mine = pull.incarnation or ""
        told = self.moved.get(mine)
        if told is None or told.value is None or pull.value is None or pull.queue_offset is None:
            return
        if ended_before(told, pull) and pull.queue_offset >= told.value:
            self.reached[mine] = max(pull.value, self.reached.get(mine, told.value))

    def _committed(self, row: Row) -> Iterable[Finding]:
        pull = self.moved.get(row.incarnation or "")
        if pull is None or self.newest is None:
            return NOTHING
        at_once = row.started_us < over_us(pull) + self.config.guard_slack_ms * MS
        if at_once or self.context.is_leaving(row.client_id, row.group):
            return NOTHING
        self.opportunities += 1
        start, value = pull.value or 0, row.value or 0
        if start <= value <= self.reached.get(row.incarnation or "", start):
            return NOTHING
        return (CommittedTheOld(self.newest, pull, row),)

    # ------------------------------------------------------------ the broker's half

    def _until_us(self, row: Row) -> int:
        """Until when the commit, or the reset, may be applied."""
        until_us = max(over_us(row), row.started_us + self.bound_us)
        return self.context.may_arrive_until(row, until_us)

    def _answered(self, row: Row) -> Iterable[Finding]:
        reset, answer = self.asked.pop(row.seq_begin, None), answered_offset(row)
        if reset is None or answer is None or self.pulled_until_us >= reset.started_us:
            return NOTHING
        if len(self.resets) == REMEMBERED_MAX and self.resets[0].seq_begin >= reset.seq_begin:
            return NOTHING  # so many came since then that some are forgotten
        context = self.context
        since_us = reset.started_us - self.parked_us
        if context.broker_died_since(row.broker, reset) or context.broker_paused_since(
            row.broker, since_us
        ):
            return NOTHING
        in_flight = [each for each in self.commits if self._until_us(each) >= reset.started_us]
        as_good = {each.value for each in self.resets if self._until_us(each) >= reset.started_us}
        if not in_flight or None in as_good:
            return NOTHING
        self.opportunities += 1
        if answer in as_good:
            return NOTHING
        named = [each for each in in_flight if each.value == answer] or in_flight
        return (Overwritten(named[-1], reset, row),)


judge = LaneJudge


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
