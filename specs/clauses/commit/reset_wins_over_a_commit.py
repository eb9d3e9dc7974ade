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

import numpy as np

from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, CLOSED_WORLD, Premise
from specs.clauses.rows import NOTHING_HERE, OFFSET_MOVED, answered_offset
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints
from specs.facts.lookups import each_lane
from specs.facts.presence import were_leaving
from specs.facts.requests import may_apply_until
from specs.facts.segments import chosen, positions
from specs.facts.stored import broker_died
from specs.facts.tenures import TENURE_COLUMNS, Tenures
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
COLUMNS = TENURE_COLUMNS


class Overwritten(Finding):
    commit: Row
    reset: Row
    answer: Row


class CommittedTheOld(Finding):
    reset: Row
    pull: Row
    commit: Row


def judge(rows: Rows, findings: Findings) -> None:
    resets = rows.of(Kind.RESET)
    if len(resets):
        _judge_answers(rows, findings, resets)
        _judge_commits(rows, findings, resets)


def _judge_answers(rows: Rows, findings: Findings, resets: Ints) -> None:
    """(a) Each look-up after a reset that was answered, beside what was in flight."""
    pulls = rows.of(Kind.PULL)
    pulls = pulls[np.isin(rows.lane[pulls], rows.lane[resets])]
    waited_until = np.full(rows.size, NONE, np.int64)
    waited_until[pulls] = may_apply_until(rows, pulls, rows.config("long_poll_ms", pulls) * MS)
    pulled, is_reset = Line(rows.lane, rows.begin, pulls), rows.are(Kind.RESET)
    known = is_reset & rows.ended_as(Outcome.OK) & (rows.value != NONE)
    for lane, puts, looks in rows.shared(each_lane):
        stored = lane[known[lane]]
        for look in looks.tolist() if len(stored) else ():
            over = stored[rows.end[stored] < rows.begin[look]]
            if not len(over):
                continue
            reset, now = int(over[-1]), int(rows.end[look])
            since_us = int(rows.started[reset])
            begun = pulled.within(int(rows.lane[look]), -NEVER, now)
            if waited_until[begun].max(initial=NONE) >= since_us or _may_be_lost(rows, reset, now):
                continue
            later = puts.since(since_us, now)
            in_flight = later[~is_reset[later] & (rows.value[later] != NONE)]
            as_good, answer = rows.value[later[is_reset[later]]], rows.value[look]
            if not len(in_flight) or NONE in as_good:
                continue
            findings.at_stake_times(look, 1)
            if answer not in as_good:
                named = in_flight[rows.value[in_flight] == answer]
                commit = int((named if len(named) else in_flight)[-1])
                roles = {"commit": commit, "reset": reset, "answer": look}
                findings.shown(Overwritten, roles)


def _may_be_lost(rows: Rows, reset: int, now: int) -> bool:
    """Did the broker die since the reset, or stand still, so that requests may have waited for it?"""
    context, broker = rows.context_of(reset), rows.name_of("broker", reset)
    config = context.info.config
    waits_us = (config.delay_bound_ms + config.long_poll_ms) * MS + context.info.clock_bound_us
    paused = context.broker_paused_since(broker, int(rows.started[reset]) - waits_us, now)
    return paused or broker_died(rows, reset, now)


def _judge_commits(rows: Rows, findings: Findings, resets: Ints) -> None:
    """(b) Each commit of an incarnation whose pull took the last reset, beside what it pulled since."""
    tenures, own, begin, end = rows.shared(Tenures), rows.incarnation, rows.begin, rows.end
    code, value, offset = rows.number("code"), rows.value, rows.offset
    pulls = rows.are(Kind.PULL) & tenures.named & (value != NONE) & (end < NEVER)
    told = pulls & ((code == OFFSET_MOVED) | ((code == NONE) & (value < offset)))
    reset = Line(rows.lane, begin, resets).last_before(rows.lane, end)
    add, drop = (
        Line(own, begin, positions(rows.are(kind) & tenures.named)).last_before(own, end)
        for kind in (Kind.ADD, Kind.DROP)
    )
    to_it = told & (reset != NOWHERE) & (value == value[reset])
    held = chosen(begin, drop, NONE) <= chosen(begin, add, NONE)
    took = positions(to_it & (code == OFFSET_MOVED) & held)
    took = took[~were_leaving(rows, took, end[took])]
    taken = Line(own, end, took)

    commits = positions(rows.are(Kind.COMMIT) & tenures.named & (value != NONE))
    pull = taken.last_before(own[commits], begin[commits])
    is_new = (reset[pull] == tenures.reset[commits]) & (add[pull] == tenures.add[commits])
    slack_us = rows.config("guard_slack_ms", commits) * MS
    is_new &= (pull != NOWHERE) & (rows.started[commits] >= rows.ended[pull] + slack_us)
    commits, pull = commits[is_new], pull[is_new]
    looks, client = rows.are(Kind.FETCH_OFFSET), rows.lane_client
    moved = were_leaving(rows, commits, begin[commits])
    for key, time, events in (
        (own, end, told & ~to_it),
        *((own, time, looks & tenures.named) for time in (begin, end)),
        *((client, time, looks & ~tenures.named) for time in (begin, end)),
    ):
        last = Line(key, time, positions(events)).last_before(key[commits], begin[commits])
        moved |= chosen(time, last, NONE) > end[pull]
    commits, pull = commits[~moved], pull[~moved]
    findings.at_stake(commits)

    passed = np.isin(code, NOTHING_HERE) & (value > offset)
    since = taken.last_before(own, begin)
    brought = pulls & ~told & (rows.ended_as(Outcome.OK) | passed) & (since != NOWHERE)
    brought &= (offset >= 0) & (offset >= value[since])
    furthest = Line(since, end, positions(brought)).highest_before(pull, begin[commits], value)
    furthest = np.maximum(chosen(value, furthest, NONE), value[pull])
    wrong = (value[commits] < value[pull]) | (value[commits] > furthest)
    commits, pull = commits[wrong], pull[wrong]
    findings.broken(CommittedTheOld, reset=reset[pull], pull=pull, commit=commits)


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
