"""While a lane waits for a thread, no other lane of its client keeps one for longer than the cap and one call.

Lanes wait for a thread in line. One that has had its thread for the cap on continuous work (60 s by default) starts no
further call before the others in line have had their turn; so with L lanes and T threads none waits for longer than
ceil(L / T) times the cap and one call. That sum follows from what is judged here, one turn: a lane *waits* from the end
of its incarnation's first pull that found messages until its first call. Another lane of the same client that starts a
call in that time starts none more than the cap later while the first one still waits. A pull that found none and is
told to go on further ahead begins no waiting, nor does any pull of a group of which a member filters, as its start
tells: what it found the client may not want.

A lane without a fresh lease is not in line: an unlock, a refusal (an error code is none), or no grant within the
client's limit ends its waiting, and so do its drop, a reset, a pull that is told to go on elsewhere, and the shutdown,
the death or a pause of its client. Two processes of one client id, where both are told, have a thread each. A lane that
was dropped and added again while a call of its earlier life still runs waits for that call, and not for a thread: it is
not judged. The slack of a timer is granted.
"""

import numpy as np

from specs.clauses.premises import (
    NO_FILTER,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.leases import refusals
from specs.facts.presence import were_there
from specs.facts.ready import READY_COLUMNS, Lanes, Leases, fetching
from specs.facts.segments import (
    Segments,
    Timeline,
    by_time,
    chosen,
    dense,
    first_of_each,
    highest_so_far,
    pairs,
    positions,
)
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LIV-3"
TITLE = "no lane keeps its thread"
STATEMENT = (
    "No lane waits for a thread longer than ceil(lanes / threads) turns; a turn is the cap on continuous work and one "
    "call."
)
PARTY = Party.CLIENT
KEY = Key.GROUP
IN_LINE = Premise(
    "in line",
    "the client neither died nor began to shut down while the lane waited",
    told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
)
PREMISE = (ORDERLY, NO_WALL_CLOCK_STEP, NOT_PAUSED, IN_LINE, NO_RESET, NO_FILTER)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.FEW_THREADS),)
KINDS = frozenset(
    {Kind.ADD, Kind.DROP, Kind.PULL, Kind.DELIVER, Kind.LOCK, Kind.UNLOCK, Kind.RESET}
)
SETTINGS = ("client_lease_ms", "continuous_ms")
NEEDS = frozenset({Kind.ADD, Kind.DELIVER, Kind.PULL})
EXCUSED_BY = frozenset({Kind.JOIN})
BY_CLIENTS = True
COLUMNS = READY_COLUMNS


class Starved(Finding):
    """pull: since when the lane waits. first, later: calls of one other lane."""

    add: Row
    pull: Row
    first: Row
    later: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each lane that waits beside the calls of its client's other lanes."""
    lanes = rows.shared(Lanes)
    if not len(lanes.adds):
        return
    add, pull, until = _waiting(rows, lanes)
    calls = _calls(rows, lanes)
    line = Timeline(lanes.client[calls], rows.begin[calls])
    start, stop = line.between(lanes.client[add], rows.end[pull], until)
    for index, place in pairs(start, stop):
        call = calls[line.order[place]]
        unmoved = lanes.reset_before(call, rows.begin[call]) < rows.begin[add[index]]
        unmoved &= ~rows.of_two_processes(call, add[index])
        index, call = index[unmoved], call[unmoved]
        turn, turns = dense(index, rows.incarnation[call])
        firsts = call[first_of_each(turn, turns)]
        findings.at_stake(call[call != firsts[turn]])
        cap_us = rows.config("continuous_ms", call) + rows.config("schedule_slack_ms", call)
        cap_us *= MS
        late = positions(rows.started[call] > rows.started[firsts[turn]] + cap_us)
        late = late[_in_line(rows, lanes, add[index[late]], pull[index[late]], call[late])]
        for which in late.tolist():
            first, later = int(firsts[turn[which]]), int(call[which])
            if rows.started[later] > rows.started[first] + cap_us[which]:
                firsts[turn[which]] = later  # the next one counts from here
                roles = {"add": int(add[index[which]]), "pull": int(pull[index[which]])}
                findings.shown(Starved, {**roles, "first": first, "later": later})


def _calls(rows: Rows, lanes: Lanes) -> Ints:
    """The first row of each listener call."""
    where = positions(rows.are(Kind.DELIVER) & lanes.named)
    where = where[by_time(rows.incarnation[where], rows.begin[where])]
    of, op = rows.incarnation[where], rows.number("op_id")[where]
    first = np.ones(len(where), np.bool_)
    first[1:] = (of[1:] != of[:-1]) | (op[1:] != op[:-1])
    return where[first]


def _waiting(rows: Rows, lanes: Lanes) -> tuple[Ints, Ints, Ints]:
    """Of each lane that waits its ADD, the pull since which it does, and the moment until which it is in line."""
    add, pulls = lanes.adds, fetching(rows)
    found = Line(rows.incarnation, rows.end, pulls[~rows.found_nothing[pulls]])
    pull = found.first_after(rows.incarnation[add], rows.begin[add])
    add, pull = add[pull != NOWHERE], pull[pull != NOWHERE]

    def first_after(key: Ints, time: Ints, where: Ints) -> Ints:
        return chosen(time, Line(key, time, where).first_after(key[add], rows.begin[add]), NEVER)

    own = positions(rows.are(Kind.ADD, Kind.DELIVER, Kind.DROP) & lanes.named)
    answered = rows.are(Kind.LOCK) & (rows.end < NEVER)
    refused = positions(answered & rows.shared(refusals))
    lost = np.concatenate([refused, _too_late(rows, lanes, answered)])
    ends = (
        first_after(rows.incarnation, rows.begin, own),
        first_after(lanes.lane, rows.begin, rows.of(Kind.UNLOCK)),
        first_after(lanes.lane, rows.end, lost),
        rows.clock_stepped(add),
        rows.shared(Leases).sent_away(add, rows.begin[pull]),
    )
    until = np.minimum.reduce(ends)
    waits = (rows.end[pull] < until) & ~_works_still(rows, lanes, add, rows.end[pull])
    for index in positions(waits).tolist():
        group, now = rows.name_of("group", int(add[index])), int(rows.end[pull[index]])
        waits[index] = not rows.context_of(int(add[index])).is_filtered(group, now)
    return add[waits], pull[waits], until[waits]


def _too_late(rows: Rows, lanes: Lanes, answered: Mask) -> Ints:
    """Grants that were answered when the one before had run out."""
    grants = positions(answered & rows.ended_as(Outcome.OK))
    grants = grants[by_time(lanes.lane[grants], rows.end[grants])]
    before = chosen(grants, Segments(lanes.lane[grants]).previous(), NOWHERE)
    lease_us = rows.config("client_lease_ms", grants) * MS
    found: Ints = grants[(before != NOWHERE) & (rows.ended[grants] > rows.ended[before] + lease_us)]
    return found


def _works_still(rows: Rows, lanes: Lanes, add: Ints, now: Ints) -> Mask:
    """Had a call of each lane at its client begun and not ended by then, in a process that is there still?"""
    calls = positions(rows.are(Kind.DELIVER) & lanes.named)
    calls = calls[by_time(lanes.lane[calls], rows.begin[calls])]
    last = Timeline(lanes.lane[calls], rows.begin[calls]).last_before(lanes.lane[add], now)
    end = rows.end[calls]
    found = chosen(end[highest_so_far(lanes.lane[calls], end)], last, NONE) > now
    for index in positions(found).tolist():
        place, then = int(add[index]), int(now[index])
        mine = calls[(lanes.lane[calls] == lanes.lane[place]) & (end > then)]
        context, client = rows.context_of(place), rows.client_of(place)
        found[index] = not all(
            context.is_of_an_old_life(client, rows.name_of("group", place), begin, then)
            for begin in rows.begin[mine].tolist()
            if begin < then
        )
    return found


def _in_line(rows: Rows, lanes: Lanes, add: Ints, pull: Ints, call: Ints) -> Mask:
    """Was each lane's client there, and its lease not over, up to this call of another lane?"""
    lock = rows.shared(Leases).granted_by(add, rows.begin[call], np.full(len(add), NEVER))
    until_us = chosen(rows.ended, lock, NEVER) + rows.config("client_lease_ms", call) * MS
    there = were_there(rows, call, rows.begin[add], rows.ended[pull])
    return there & (rows.started[call] <= until_us)


def explain(found: Starved) -> str:
    pull, first, later = found.pull, found.first, found.later
    return (
        f"{who(pull)} had messages of {pull.lane} from {at(pull)} on, and no thread for them: its calls for "
        f"{first.lane} went on from {at(first)} to {at(later)}, {ms(later.started_us - first.started_us)}, in one turn"
    )
