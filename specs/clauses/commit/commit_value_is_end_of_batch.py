"""Every committed value is the end of a finished batch, the start, or what was committed before; and it comes in time.

*Value*: the incarnation's start (its ADD, set anew by its look-up), its last commit's value, or one more than the
highest offset of a batch that it finished: by a call that acknowledges, or by giving the batch's last message up,
perhaps where nobody told. A commit that was refused is none, whatever its value. Judged where the start was seen, and
every look-up was seen to be answered; a broker's correction (of the value that a pull was told to go on at) and a reset
are excused.

*In time*: a batch that a call finished is committed before the client has worked on for longer than the first
persist delay, one persist interval and the slack of a timer. A commit that was refused reported nothing; the time for
the last batch that it would have reported begins anew with the refusal. Whatever the client begins on the lane is work:
a call, a pull, and the commit itself that comes too late. Judged where the ADD was seen: whoever records adds records
commits. Not claimed after a drop, a pause of the client or a crash of the broker, and said once for each incarnation.
Nor, unless the run declares that clients themselves tell their commits, where a pause of the broker or a fault of the
link stood in the way of one: elsewhere it is seen only once it gets through.
"""

from functools import cached_property

import numpy as np

from specs.clauses.links import Sending
from specs.clauses.premises import BROKER_LIVES, NO_FILTER, NO_RESET, NOT_PAUSED, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, over_us, start_of, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, may_be_given_up
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.dead_letters import may_be_untold
from specs.facts.segments import Timeline, chosen, dense, first_fitting, ints, positions
from specs.facts.starts import Starts
from specs.facts.stored import broker_died
from specs.facts.tenures import Tenures
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Key, Kind, Level, Outcome, Party

ID = "CMT-2"
TITLE = "a committed value is the end of a batch, in time"
STATEMENT = (
    "Every committed value is one more than the end of a finished batch (or the start), and comes within the persist "
    "interval."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER, NOT_PAUSED, BROKER_LIVES)
SOURCES = ("docs/sources.md#offsets", "docs/sources.md#orderly-loop")
KINDS = CALL_KINDS | {Kind.COMMIT, Kind.DROP, Kind.FETCH_OFFSET}
SETTINGS = ("consume_from", "max_reconsume_times", "persist_first_ms", "persist_ms")
NEEDS = frozenset({Kind.ADD, Kind.COMMIT, Kind.DELIVER})
TOLD_OF_REFUSED_COMMITS = True
COLUMNS = (*CALL_COLUMNS, "detail")
DONE = (Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK)


class OddValue(Finding):
    start: Row
    commit: Row


class NotInTime(Finding):
    add: Row
    finished: Row
    later: Row
    bound_ms: int


class _Batches:
    """The calls of tenures, and what they finished before a drop.

    highest: of each call its row with the highest offset. ends: of these the ones that acknowledge, and the dead
    letters of what was delivered last. unseen: calls whose last message may have been given up without a word.
    finished: calls that acknowledge in whatever mode.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, self.tenures = rows, rows.shared(Tenures)
        tenure, offset, mode = self.tenures.number, rows.offset, rows.text("commit_mode")
        told = self.tenures.named & (offset != NONE)
        calls = positions(told & rows.are(Kind.DELIVER))
        number, _ = dense(tenure[calls], rows.number("op_id")[calls])
        order = np.lexsort((offset[calls], number))
        last = np.append(number[order][1:] != number[order][:-1], True)[: len(order)]
        self.highest = calls[order][last]
        manual = mode == rows.code("commit_mode", CommitMode.MANUAL)
        commit, done = rows.ended_as(Outcome.COMMIT), rows.ended_as(*DONE)
        suspended = rows.ended_as(*LISTENER_SUSPENDS) & ~manual
        ended = positions(told & (rows.end < NEVER))
        taken_up = np.zeros(rows.size, np.bool_)
        taken_up[ended] = ~self.after_drop(ended, rows.end)
        acknowledged = commit | (done & ~manual)
        certain = commit | (done & ~manual & (mode != NO_TEXT))
        letters = positions(
            told & rows.are(Kind.DEAD_LETTER) & rows.ended_as(Outcome.OK) & taken_up
        )
        before = Line(tenure, rows.begin, self.highest).last_before(
            tenure[letters], rows.end[letters]
        )
        of_last = (before != NOWHERE) & suspended[before] & (offset[before] == offset[letters])
        self.ends = np.append(
            self.highest[(acknowledged & taken_up)[self.highest]], letters[of_last]
        )
        self.unseen = self.highest[(may_be_given_up(rows) & suspended)[self.highest]]
        has_add = self.tenures.add != NOWHERE
        self.finished = self.highest[(certain & taken_up & has_add)[self.highest]]

    def after_drop(self, where: Ints, moment: Ints) -> Mask:
        """Of each of these rows: had its tenure dropped the lane before that moment?"""
        rows, tenure = self.rows, self.tenures.number
        drops = positions(rows.are(Kind.DROP) & self.tenures.named)
        found: Mask = (
            Line(tenure, rows.begin, drops).last_before(tenure[where], moment[where]) != NOWHERE
        )
        return found

    @cached_property
    def void(self) -> Mask:
        """Of each row: was the offset reset since its tenure began, as far as that was seen?"""
        reset, begin = self.tenures.reset, self.rows.begin
        found: Mask = chosen(begin, reset, NONE) > chosen(begin, self.tenures.add, NONE)
        return found

    def end_at(self, ends: Ints, commits: Ints) -> Mask:
        """Of each of these commits: does a batch end at its value, by one of these rows, before it began?"""
        rows, tenure, count = self.rows, self.tenures.number, len(ends)
        value = np.append(rows.offset[ends] + 1, rows.value[commits])
        key, _ = dense(np.append(tenure[ends], tenure[commits]), value)
        line = Timeline(key[:count], rows.end[ends])
        found: Mask = line.last_before(key[count:], rows.begin[commits]) != NOWHERE
        return found


def judge(rows: Rows, findings: Findings) -> None:
    """Each commit beside what its value may be, and each finished batch beside the commits that came in time."""
    batches = _Batches(rows)
    commits = positions(rows.are(Kind.COMMIT) & batches.tenures.named & (rows.value != NONE))
    if len(commits):
        _judge_values(rows, findings, batches, commits[~rows.ended_as(Outcome.REFUSED)[commits]])
    _judge_times(rows, findings, batches, commits)


def _judge_values(rows: Rows, findings: Findings, batches: _Batches, told: Ints) -> None:
    tenure, value = batches.tenures.number, rows.value
    previous = Line(tenure, rows.begin, told).last_before(tenure[told], rows.begin[told])
    starts, now = rows.shared(Starts), rows.begin[told]
    start = starts.row(told, now)
    starts_at = np.where(starts.asks(told, now), NONE, chosen(starts.value, start, NONE))
    fits = (value[told] == starts_at) | (value[told] == chosen(value, previous, NONE))
    fits |= batches.end_at(batches.ends, told)
    judged = (starts_at != NONE) & ~(rows.correction | batches.void)[told]
    judged &= fits | ~(may_be_untold(rows, told) & batches.end_at(batches.unseen, told))
    findings.at_stake(told[judged])
    odd = judged & ~fits
    findings.broken(OddValue, start=start[odd], commit=told[odd])


def _judge_times(rows: Rows, findings: Findings, batches: _Batches, commits: Ints) -> None:
    """Each finished batch, and each refused commit that would have reported one, beside the first work after its time.

    A commit is work, too, be it the one that comes too late.
    """
    finished, again = batches.finished, _refused(rows, batches, commits)
    call = np.append(finished, again[:, 0])
    since = np.append(finished, again[:, 1])
    tenure, bound_us = batches.tenures.number, np.zeros(len(call), np.int64)
    for name in ("persist_first_ms", "persist_ms", "schedule_slack_ms"):
        bound_us += rows.config(name, call) * MS
    working = rows.are(Kind.DELIVER, Kind.PULL, Kind.COMMIT) & batches.tenures.named
    work = Line(tenure, rows.started, positions(working))
    later = work.first_after(tenure[call], rows.ended[since] + bound_us)
    late = positions((later != NOWHERE) & ~batches.void[later])
    late = late[~batches.after_drop(later[late], rows.begin)]
    covers = Timeline(tenure[commits], rows.begin[commits])
    start, stop = covers.between(
        tenure[call[late]], rows.end[since[late]] + 1, rows.begin[later[late]]
    )
    value = rows.value[commits][covers.order]
    reported = first_fitting(
        start, stop, lambda index, place: value[place] > rows.offset[call[late[index]]]
    )
    late = late[reported == NOWHERE]
    late = late[np.lexsort((rows.end[since[late]], rows.begin[later[late]]))]
    said: set[int] = set()
    for each in late.tolist():
        one, until, work_at = int(call[each]), int(since[each]), int(later[each])
        mine = int(tenure[one])
        if mine in said or _is_excused(rows, one, until, work_at):
            continue
        said.add(mine)
        findings.at_stake_times(work_at, 1)  # no commit counts it
        roles = {"add": int(batches.tenures.add[one]), "finished": one, "later": work_at}
        findings.shown(NotInTime, roles, {"bound_ms": int(bound_us[each]) // MS})


def _refused(rows: Rows, batches: _Batches, commits: Ints) -> Ints:
    """The last batch that each refused commit would have reported, if no other commit may have; and that commit."""
    found = []
    tenure, finished = batches.tenures.number, batches.finished
    ends = Timeline(tenure[finished], rows.end[finished])
    others = Timeline(tenure[commits], rows.begin[commits])
    refused = commits[(rows.ended_as(Outcome.REFUSED) & (rows.end < NEVER))[commits]]
    since = np.full(len(refused), -NEVER)
    starts, stops = ends.between(tenure[refused], since, rows.begin[refused])
    for commit, start, stop in zip(refused.tolist(), starts, stops, strict=True):
        done = finished[ends.order[start:stop]]
        done = done[rows.offset[done] < rows.value[commit]]
        if not len(done):
            continue
        last = int(done[np.lexsort((rows.end[done], rows.offset[done]))[-1]])
        window = (tenure[[last]], rows.end[[last]] + 1, rows.end[[commit]])
        low, high = (int(bound[0]) for bound in others.between(*window))
        told = commits[others.order[low:high]]
        told = told[rows.value[told] > rows.offset[last]]
        if (rows.ended_as(Outcome.REFUSED)[told] & (rows.end[told] <= rows.end[commit])).all():
            found.append((last, commit))
    return ints(found).reshape(-1, 2)


def _is_excused(rows: Rows, finished: int, since: int, later: int) -> bool:
    """Did the client stand still, or the broker die, since; or may the commit wait where it is seen as it arrives?"""
    context, now, since_us = (
        rows.context_of(finished),
        int(rows.begin[later]),
        int(rows.ended[since]),
    )
    client, broker = rows.party_of(later)
    if context.paused_since(client, since_us, now) or broker_died(rows, finished, now):
        return True
    if Kind.COMMIT in (context.info.records or {}).get(Level.CLIENT, ()):
        return False
    # Links suffer for the delay bound after a fault; here only what lasted beyond the batch's end counts.
    sent_us = since_us + context.info.config.delay_bound_ms * MS
    sending = Sending(client, broker, Kind.COMMIT, sent_us)
    return context.is_disturbed(sending, int(rows.started[later]), now)


def explain(found: OddValue | NotInTime) -> str:
    if isinstance(found, OddValue):
        start, commit = found.start, found.commit
        return (
            f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}; that is neither its start "
            f"({start_of(start)}) nor the end of a batch that it had finished since {at(start)}"
        )
    finished, later = found.finished, found.later
    waited = later.started_us - over_us(finished)
    return (
        f"{who(later)} finished offset {finished.queue_offset} of {later.lane} at {at(finished)} and was still at work "
        f"{ms(waited)} later, at {at(later)}, without having committed {(finished.queue_offset or 0) + 1}; "
        f"{found.bound_ms} ms are allowed"
    )
