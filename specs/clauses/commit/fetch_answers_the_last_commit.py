"""Who asks for the stored offset hears the last acknowledged commit, or one that may have come after it.

Within one broker epoch. Take the acknowledged commit that began last among those that ended before the question:
every commit that was certainly over before it began is overwritten. What remains are its own value and those of all
commits that were, or may have been, applied later and before the answer: each may be applied until its answer, and,
answered or not, within the bound for delays after it was sent (a network may duplicate it), or for as long as a fault
of its link held it up; one that never ended is under way until its client dies. An answer that names another value, or
"nothing stored", is a violation. A look-up that was answered tells as much as an acknowledged commit: what it heard was
stored then, and two look-ups with nothing between them that could have been applied hear the same. A commit that was
refused changed nothing.

Nobody hears what nobody named: where, in a closed world, the lane's first look-up, before any commit or reset, said
that nothing was stored, every answer is a value of one that had begun before the answer's end, or 0, or "nothing
stored", across crashes of the broker too. Where no look-up said so, any value may have been stored before the history's
first row: one-way commits may never arrive, and what a crash takes back brings an older value to light.

A commit is an unconditional put, so the values need not ascend. Of the last commit nothing is said where a negative
value was committed (it reads as "nothing stored"), where the broker died since that commit (see CMT-7) or was paused
since then (a request may have waited in its socket for longer than the bound), nor on a lane whose offset was reset.
"Nothing stored" is no violation where the broker keeps nothing before the value that was stored, as far as it has
announced: it forgets the offset of a group that nobody subscribes to any more, once that has fallen behind what it
has removed. Where not everybody is recorded, and the history may begin in the middle, nothing is said for the length
of the bound for delays from the lane's first row on. Nor is anything said of the last commit where nobody tells the
value of one that may have been applied after it (a raw request may tell none).
"""

import itertools

import numpy as np

from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, NO_RESET, Premise
from specs.clauses.rows import answered_offset
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints
from specs.facts.lookups import Puts, answers, each_lane
from specs.facts.segments import distinct, highest_so_far
from specs.facts.stored import broker_died
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-9"
TITLE = "a look-up answers the last commit"
STATEMENT = (
    "A look-up of the stored offset answers the last acknowledged commit of the epoch, and "
    "never what nobody committed."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (
    NO_RESET,
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    Premise(
        "not cleaned up",
        "the broker did not say that it keeps nothing before what was stored: then it may be forgotten",
        told_by=frozenset({Kind.TRIM}),
    ),
)
SOURCES = ("docs/sources.md#offsets",)
RULES = ("WIR-13",)
KINDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET})
NEEDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET})
EXCUSED_BY = frozenset({Kind.FAULT})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = ("client_id", "value")
REMEMBERED_MAX = 1_024
"""Among more values an answer is not looked for: of a long queue no more are at hand (`spark_checkers.pieces`)."""


class Forgotten(Finding):
    """first: the lane's first row, where the history may begin in the middle. known: what was certainly stored: an
    acknowledged commit, or an answer to an earlier look-up."""

    first: Row | None
    known: Row
    answer: Row


class NeverCommitted(Finding):
    """nothing: the look-up that found nothing stored before anybody had named any value."""

    nothing: Row
    answer: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each answered look-up of a lane, beside what was certainly stored before it, and what came since."""
    told = rows.shared(answers)
    for lane, puts, looks in rows.shared(each_lane):
        stored, nothing = _Stored(rows, lane), int(looks[0])
        may_be_stored = told[nothing] >= 0 or len(puts.begun(int(rows.end[nothing])))
        if may_be_stored or not rows.context_of(nothing).info.closed_world:
            nothing = NOWHERE
        for look in looks.tolist():
            if nothing not in (NOWHERE, look) and _is_invented(rows, findings, puts, look):
                findings.shown(NeverCommitted, {"nothing": nothing, "answer": look})
            elif rows.end[look] < stored.reset and not _is_forgotten(
                rows, findings, puts, stored, look
            ):
                stored.heard_by(look)


class _Stored:
    """What was certainly stored for a lane: acknowledged commits, and answers of look-ups that were not wrong."""

    def __init__(self, rows: Rows, lane: Ints) -> None:
        info, begin = rows.context_of(int(lane[0])).info, rows.begin
        self.rows, self.first = rows, int(lane[0])
        self.bound_us = info.config.delay_bound_ms * MS + info.clock_bound_us
        self.floor_us = -1 if info.closed_world else int(rows.started[self.first]) + self.bound_us
        self.reset = int(begin[lane[rows.are(Kind.RESET)[lane]]].min(initial=NEVER))
        told = rows.are(Kind.COMMIT) & rows.ended_as(Outcome.OK) & (rows.value != NONE)
        commits = lane[(told & (rows.started > self.floor_us))[lane]]
        self.commits = commits[np.argsort(rows.end[commits])]
        self.latest = highest_so_far(np.zeros_like(self.commits), begin[self.commits])
        self.heard: list[int] = []  # each begins and ends later than the one before

    def heard_by(self, look: int) -> None:
        begin, last = self.rows.begin, self.heard[-1] if self.heard else NOWHERE
        later = last == NOWHERE or begin[look] > begin[last]
        if later and self.rows.value[look] > 0 and self.rows.started[look] > self.floor_us:
            self.heard.append(look)

    def before(self, look: int) -> int:
        """Of what was over when the look-up began, what had begun last; or NOWHERE."""
        begin, end, now = self.rows.begin, self.rows.end, self.rows.begin[look]
        over = int(np.searchsorted(end[self.commits], now))
        commit = [int(self.commits[self.latest[over - 1]])] if over else []
        heard = (each for each in reversed(self.heard) if end[each] < now)
        known = [*commit, *itertools.islice(heard, 1)]
        return max(known, key=lambda each: int(begin[each]), default=NOWHERE)


def _is_invented(rows: Rows, findings: Findings, puts: Puts, look: int) -> bool:
    """Has nobody named the answer? Nothing was stored at first."""
    answer, values = rows.value[look], rows.value[puts.begun(int(rows.end[look]))]
    if (values == NONE).any():
        return False
    findings.at_stake_times(look, 1)
    if len(distinct(values)) > REMEMBERED_MAX:
        return bool(answer > max(0, values.max()))
    return bool(answer > 0 and answer not in values)


def _is_forgotten(rows: Rows, findings: Findings, puts: Puts, stored: _Stored, look: int) -> bool:
    """Is the answer none of the values that may be stored, by what certainly was?"""
    known = stored.before(look)
    if known == NOWHERE:
        return False
    context, broker = rows.context_of(look), rows.name_of("broker", look)
    since_us, now = int(rows.started[known]), int(rows.end[look])
    values = rows.value[[known, *puts.since(since_us, now).tolist()]]
    lowest, answer = int(values.min()), int(rows.shared(answers)[look])
    if (
        lowest < 0  # it reads as nothing stored, or nobody tells it
        or len(values) > REMEMBERED_MAX
        or broker_died(rows, known, now)
        or context.broker_paused_since(broker, since_us - stored.bound_us, now)
        or (answer < 0 and lowest <= context.kept_from(rows.queue_of(look), now))
    ):
        return False
    findings.at_stake_times(look, 1)
    if answer in values:
        return False
    closed = context.info.closed_world or stored.first == known
    first = NOWHERE if closed else stored.first
    findings.shown(Forgotten, {"first": first, "known": known, "answer": look})
    return True


def explain(found: Forgotten | NeverCommitted) -> str:
    answer = found.answer
    told = "that nothing was stored" if answered_offset(answer) == -1 else str(answer.value)
    heard = f"{who(answer)} asked at {at(answer)} for the offset stored for {answer.lane} and heard {told}"
    if isinstance(found, NeverCommitted):
        return (
            f"{heard}, which nobody had committed since nothing was stored at {at(found.nothing)}"
        )
    known = found.known
    if known.kind is Kind.FETCH_OFFSET:
        return f"{heard}, after {who(known)} had heard {known.value} at {at(known)}; nothing came since then"
    return (
        f"{heard}, after {who(known)} had committed {known.value} at {at(known)} and been answered; nothing came since "
        "then"
    )
