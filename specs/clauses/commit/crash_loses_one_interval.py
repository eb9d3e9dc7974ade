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
the bound for delays from the lane's first row on.
"""

from functools import cached_property

import numpy as np

from specs.clauses.premises import BROKER_NOT_PAUSED, NO_RESET
from specs.clauses.rows import answered_offset
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, over_us, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints
from specs.facts.lookups import Puts, each_lane
from specs.facts.segments import chosen, ints, positions
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
COLUMNS = ("client_id", "value")


class LostInCrash(Finding):
    """first: what shows that the broker, or the history, had begun so long before. interval_ms: what may be lost."""

    first: Row | None
    commit: Row
    death: Row
    answer: Row
    interval_ms: int


class _Lane:
    """A lane's commits, resets and look-ups, of a broker that crashed: an array has a value of each."""

    def __init__(self, rows: Rows, where: Ints, puts: Puts) -> None:
        self.rows, self.where, self.puts = rows, where, puts
        self.context = context = rows.context_of(int(where[0]))
        self.broker = broker = rows.name_of("broker", int(where[0]))
        config, clocks_us = context.info.config, context.info.clock_bound_us
        slack_us = config.schedule_slack_ms * MS + clocks_us
        self.start_us = config.stored_first_ms * MS + slack_us
        self.short_us = config.stored_each_ms * MS + slack_us
        self.long_us = max(self.start_us, self.short_us)
        self.bound_us = config.delay_bound_ms * MS + clocks_us
        self.crashes, self.crashed_us = ints(context.broker_deaths[broker]).T
        self.begin, self.end = rows.begin[where], rows.end[where]
        self.started, self.ended = rows.started[where], rows.ended[where]
        self.value, self.ok = rows.value[where], rows.ended_as(Outcome.OK)[where]
        self.looks, self.resets = (
            rows.are(kind)[where] for kind in (Kind.FETCH_OFFSET, Kind.RESET)
        )

    @cached_property
    def first_answer(self) -> Ints:
        """The first answer about the lane in the life of the broker in which each was answered, or NOWHERE."""
        epochs = self.rows.number("broker_epoch")[self.where]
        asked = zip(self.begin.tolist(), epochs.tolist(), self.end.tolist(), strict=True)
        lived = [not self.context.broker_died_since(self.broker, *each) for each in asked]
        answered = (self.ok | self.rows.ended_as(Outcome.REFUSED)[self.where]) & lived
        life = np.searchsorted(ints(self.context.deaths_of(self.broker)), self.begin, side="right")
        last_first = positions(answered)[np.argsort(-self.end[answered], kind="stable")]
        first = np.full(int(life.max()) + 1, NOWHERE, np.int64)
        first[life[last_first]] = last_first
        return np.where(answered, first[life], NOWHERE)

    @cached_property
    def interval_us(self) -> Ints:
        """How long after each it is on the disk, if it is stored: NEVER where that is not certain."""
        answered_us = chosen(self.ended, self.first_answer, NEVER)
        had_begun = answered_us + self.start_us < self.started
        stored = self.ok & ~self.looks & (self.first_answer != NOWHERE)
        if self.resets.any():  # the broker may have held a commit off
            stored &= self.resets | (self.end < self.begin[self.resets][0])
        if not self.context.info.closed_world:
            stored &= self.started > self.started[0] + self.bound_us
        return np.where(stored, np.where(had_begun, self.short_us, self.long_us), NEVER)

    @cached_property
    def written(self) -> Ints:
        """Which were on the disk when the broker crashed after them."""
        crash_us = np.append(self.crashed_us, NONE)
        crash_us = crash_us[np.searchsorted(self.crashes, self.begin, side="right")]
        return positions(self.ended + self.interval_us < crash_us)

    def asked(self, look: int, findings: Findings) -> None:
        """Was the look-up told what may be stored, by what was written before the last crash?"""
        context, now = self.context, int(self.end[look])
        crash = int(np.searchsorted(self.crashes, self.begin[look])) - 1
        before = self.written[self.begin[self.written] < self.crashes[crash]]
        if crash < 0 or not len(before):
            return
        stored = int(before[-1])
        since, since_us = int(self.begin[stored]), int(self.started[stored])
        values = self.rows.value[self.puts.since(since_us, now)]
        answer = int(self.value[look]) if self.ok[look] else -1
        lowest = int(values.min())  # below 0 where nobody says what one of them stored
        queue = self.rows.queue_of(int(self.where[look]))
        if (
            lowest < 0
            or any(since < seq <= now for seq in context.epoch_deaths(self.broker))
            or context.broker_paused_since(self.broker, since_us, now)
            or context.is_crowded(self.broker, now)
            or (answer < 0 and lowest <= context.kept_from(queue, now))
        ):
            return
        findings.at_stake(self.where[[look]])
        closed = context.info.closed_world
        if answer in values if closed else answer >= lowest:
            return
        first = NOWHERE if closed else 0
        if self.ended[stored] + self.long_us > self.crashed_us[crash]:
            first = int(self.first_answer[stored])
        findings.shown(
            LostInCrash,
            {
                "first": NOWHERE if first == NOWHERE else int(self.where[first]),
                "commit": int(self.where[stored]),
                "answer": int(self.where[look]),
            },
            {"interval_ms": int(self.interval_us[stored]) // MS},
            of_context={"death": int(self.crashes[crash])},
        )


def judge(rows: Rows, findings: Findings) -> None:
    """Each answered look-up after a crash, beside what was certainly written before it, and what came since."""
    dialects = rows.of_runs(
        lambda context: context.info.config.dialect == "4.9", np.arange(rows.size)
    )
    unclear = rows.are(Kind.RESET) & ((rows.value == NONE) | (dialects != 0))
    for where, puts, looks in rows.shared(each_lane):
        broker = rows.name_of("broker", int(where[0]))
        if broker in rows.context_of(int(where[0])).broker_deaths:
            lane, silent = _Lane(rows, where, puts), rows.begin[where[unclear[where]]]
            for look in looks[rows.end[looks] < silent.min(initial=NEVER)].tolist():
                lane.asked(int(np.searchsorted(lane.begin, rows.begin[look])), findings)


def explain(found: LostInCrash) -> str:
    commit, crash, answer = found.commit, found.death, found.answer
    told = "that nothing was stored" if answered_offset(answer) == -1 else f"{answer.value}"
    did = "reset it to" if commit.kind is Kind.RESET else "committed"
    return (
        f"{who(answer)} asked at {at(answer)} for the offset stored for {answer.lane} and heard {told}; "
        f"{who(commit)} had {did} {commit.value} {ms(crash.started_us - over_us(commit))} before "
        f"{crash.broker} crashed at {at(crash)}, and at most {found.interval_ms} ms may be lost"
    )
