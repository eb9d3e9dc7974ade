"""A lane whose owner died is taken over by the survivor to whom it is assigned, in a bounded time.

The time runs from the last of: the owner's death, the survivor's assignment (the first of those that hold the lane
without a break, so the removal of the dead member is over by then), and the last disturbance of the run. It is as long
as the broker keeps a lease, one rebalance, the time that a request may take, and a timer's slack. "Taken over" means
added, under a new grant; that its messages are then delivered is a matter of progress, and of the start. A disturbance
is whatever can hold a survivor up for a while: a client that joins, leaves, dies or stands still, a fault, a wall-clock
step, a request of its own for a lease or a stored offset, or anybody's for this lease, that was not answered, or
answered with an error. While one lasts nothing is owed: neither while such a request is under way, nor after one of
which nobody saw the end, unless who made it has died since. That it asks who the members are, and which queues there
are, is taken to be answered: no clause sees it. Silent after a death of a broker, by its crash or by a later epoch
(nothing says since when it is back), where somebody else was granted the lane meanwhile (whose lease lives, whatever is
assigned to whom since), and where the survivor has worked on the lane before (a call of that time may still run, and it
waits for it). A lane that its owner began to give back has no owner, dead or alive. Two processes of one client id,
where both are told, are two. Rooted in rows of the survivor at both ends: its assignment, and a request that shows that
it is still at work. That nobody has joined, and that nobody else holds the lease, is known in a closed world only.
"""

from collections.abc import Iterator

import numpy as np

from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, ORDERLY, Premise
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.leases import LEASE_COLUMNS, Grants, over_us, refusals
from specs.facts.run_context import RunContext
from specs.facts.segments import chosen, dense, ints, positions
from specs.facts.shares import that_hold
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

DISTURBS = frozenset({Kind.CRASH, Kind.FAULT, Kind.JOIN, Kind.LEAVE, Kind.PAUSE})

ID = "LSE-5"
TITLE = "a dead owner's lane is taken over"
STATEMENT = (
    "The lane of a client that died is taken over by the survivor to whom it is assigned, within the broker's limit "
    "and one rebalance."
)
PARTY = Party.PAIR
KEY = Key.RUN
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    BROKER_LIVES,
    Premise(
        "calm",
        "nobody joins, leaves, dies or stands still, no fault lasts, and the survivor's requests are answered",
        told_by=DISTURBS,
    ),
)
SOURCES = (
    "docs/sources.md#client-leases",
    "docs/sources.md#lock-table",
    "docs/sources.md#membership",
)
STAKES = (Stake(Trait.DEATH, brings=4),)
KINDS = frozenset(
    {
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.ADD,
        Kind.ASSIGN,
        Kind.FETCH_OFFSET,
        Kind.CRASH,
        Kind.FAULT,
        Kind.JOIN,
        Kind.LEAVE,
        Kind.PAUSE,
    }
)
SETTINGS = ("broker_lease_ms", "rebalance_ms")
CONCLUDES_FROM_ABSENCE = True
NEEDS = frozenset({Kind.ASSIGN, Kind.CRASH, Kind.LOCK})
COLUMNS = (*LEASE_COLUMNS, "detail", "process", "value")


class NotTakenOver(Finding):
    """grant: the dead client's. later: what shows the survivor at work, too late for the lane."""

    grant: Row
    crash: Row
    assignment: Row
    later: Row
    lane: str


def judge(rows: Rows, findings: Findings) -> None:
    """Each lane of a client that died: is somebody at work to whom it was assigned so long ago, and nobody added it?"""
    if not rows.are(Kind.CRASH).any():
        return
    at_work, adds = _at_work(rows), rows.are(Kind.ADD) & (rows.client != NO_TEXT)
    for own, crash, until in _orphans(rows):
        mine = positions(adds & (rows.lane == rows.lane[own]))
        since, asked = rows.begin[crash], at_work[rows.run[at_work] == rows.run[own]]
        asked = asked[(rows.begin[asked] > since) & (rows.begin[asked] < until)]
        share = _shares(rows, own, rows.client[asked], rows.begin[asked])
        since_us = np.maximum(chosen(rows.started, share, NEVER), rows.started[crash])
        late = (since_us < _lately_us(rows, asked)) & ~_is_doubted(rows, own, crash, asked)
        late &= ~rows.of_two_processes(share, asked)
        for first in positions(late)[:1].tolist():
            work = int(asked[first])
            if rows.client[work] not in rows.client[mine[rows.begin[mine] < rows.begin[work]]]:
                findings.at_stake_times(own, 1)
                roles = {"grant": own, "crash": crash, "assignment": int(share[first])}
                lane = {"lane": str(rows.lane_of(own))}
                findings.shown(NotTakenOver, {**roles, "later": work}, lane)
        if not late.any():
            taken = mine[rows.begin[mine] == until]
            findings.at_stake(taken[rows.client[taken] != rows.client[own]])


def _orphans(rows: Rows) -> Iterator[tuple[int, int, int]]:
    """Of each lane of a client that died its last grant, its death, and until when (seq) the lane may be nobody's.

    That is until somebody adds it, a broker dies, who was granted it last gives it back or dies, or it is granted to
    somebody else than the first one after the death, or to whom it is not assigned.
    """
    granted = rows.shared(Grants).at
    granted = granted[rows.number("queue_id")[granted] != NONE]
    granted = granted[np.argsort(rows.end[granted], kind="stable")]
    deaths, died, unlocks = rows.of(Kind.CRASH), rows.are(Kind.CRASH), rows.are(Kind.UNLOCK)
    adds = positions(rows.are(Kind.ADD) & (rows.client != NO_TEXT))
    lives_until = np.minimum(rows.of_runs(_broker_lives_until, deaths), rows.clock_stepped(deaths))
    for crash, until in zip(deaths.tolist(), lives_until.tolist(), strict=True):
        now = int(rows.begin[crash])
        hers = (rows.run == rows.run[crash]) & (rows.client == rows.client[crash])
        hers &= ~rows.of_two_processes(np.arange(rows.size), ints([crash]))
        for lane in np.unique(rows.lane[granted[hers[granted]]]).tolist() if now < until else ():
            mine = granted[rows.lane[granted] == lane]
            own = int(mine[np.searchsorted(rows.end[mine], now) - 1])
            ends = positions(
                (unlocks & (rows.lane == lane)) | (died & (rows.run == rows.run[crash]))
            )
            owner = mine[np.searchsorted(rows.end[mine], rows.begin[ends]) - 1]
            ends = ends[rows.client[owner] == rows.client[ends]]
            back = rows.begin[ends[unlocks[ends]]]
            is_hers = hers[own] and rows.end[own] < now
            if not is_hers or ((back > rows.end[own]) & (back < now)).any():
                continue
            after = mine[rows.end[mine] > now]
            taken = rows.client[after] != rows.client[after[:1]]
            taken |= _shares(rows, own, rows.client[after], rows.end[after]) == NOWHERE
            ends = np.append(ends, adds[rows.lane[adds] == lane])
            later = np.append(rows.begin[ends], rows.end[after[taken]])
            yield own, crash, int(later[later > now].min(initial=until))


def _broker_lives_until(context: RunContext) -> int:
    brokers = {*context.broker_died, *context.epochs}
    return min((seq for broker in brokers for seq in context.deaths_of(broker)), default=NEVER)


def _shares(rows: Rows, own: int, client: Ints, now: Ints) -> Ints:
    """Since when the lane is assigned to clients at these moments, by which row; one without a topic may be of any."""
    holds = that_hold(rows, f"{rows.name_of('broker', own)}/{int(rows.number('queue_id')[own])}")
    here = (rows.run == rows.run[own]) & (rows.client != NO_TEXT)
    in_group = rows.group == rows.group[own]
    away = rows.are(Kind.CRASH, Kind.LEAVE) & (in_group | (rows.group == NO_TEXT)) & here
    away_line = Line(rows.client, rows.begin, positions(away))
    since = chosen(rows.begin, away_line.last_before(client, now), NONE)
    found = np.full(len(client), NOWHERE, np.int64)
    for topic in (NO_TEXT, rows.text("topic")[own]):
        told = rows.are(Kind.ASSIGN) & here & in_group & (rows.text("topic") == topic)
        lost = Line(rows.client, rows.begin, positions(told & ~holds)).last_before(client, now)
        held = Line(rows.client, rows.begin, positions(told & holds))
        first = held.first_after(client, np.maximum(since, chosen(rows.begin, lost, NONE)))
        found = np.where(chosen(rows.begin, first, NEVER) < now, first, found)
    return found


def _lately_us(rows: Rows, asked: Ints) -> Ints:
    """What happened from then on is no longer ago than the bound, when these requests begin."""
    names = ("broker_lease_ms", "rebalance_ms", "delay_bound_ms", "schedule_slack_ms")
    bound_us: Ints = np.sum([rows.config(name, asked) for name in names], axis=0) * MS
    clocks_us = rows.clocks_us(asked)
    found: Ints = rows.started[asked] - clocks_us - bound_us
    return found


def _at_work(rows: Rows) -> Ints:
    """The requests for a lease that show a client at work, undisturbed for so long."""
    asked = positions(rows.are(Kind.LOCK) & (rows.client != NO_TEXT))
    disturbs = Line(rows.run, rows.begin, rows.of(*DISTURBS))
    now, lately_us = rows.begin[asked], _lately_us(rows, asked)
    lasting = disturbs.highest_before(rows.run[asked], now, rows.end)
    ended_us = over_us(rows, np.arange(rows.size))
    disturbed = disturbs.highest_before(rows.run[asked], now, ended_us)
    calm = chosen(rows.end, lasting, NONE) < now
    calm &= chosen(ended_us, disturbed, NONE) < lately_us
    client = dense(rows.run, rows.client)[0]
    requests = rows.of(Kind.LOCK, Kind.FETCH_OFFSET)
    return asked[calm & ~_is_held_up(rows, asked, client[asked], client, requests)]


def _is_doubted(rows: Rows, own: int, crash: int, asked: Ints) -> Mask:
    """When each of these begins: may somebody else have been granted the lane since, or is just about to be?"""
    mine, granted = rows.lane == rows.lane[own], rows.shared(Grants).at
    taken = granted[mine[granted] & (rows.end[granted] > rows.begin[crash])]
    taken = taken[np.argsort(rows.end[taken])][:1]
    lane, requests = np.full(len(asked), rows.lane[own]), positions(mine & rows.are(Kind.LOCK))
    found = _is_held_up(rows, asked, lane, rows.lane, requests)
    for taker in taken.tolist():
        found |= (rows.client[asked] != rows.client[taker]) & (rows.begin[asked] > rows.end[taker])
    return found


def _is_held_up(rows: Rows, asked: Ints, mine: Ints, key: Ints, requests: Ints) -> Mask:
    """Of each of these: is a request of its key (mine) under way when it begins, or came one to nothing lately?

    A request of who died is not under way any more.
    """
    who, now = dense(rows.run, rows.client)[0], rows.begin[asked]
    died = Line(who, rows.begin, rows.of(Kind.CRASH)).first_after(who, rows.begin)
    until = np.minimum(rows.end, chosen(rows.begin, died, NEVER))
    ended_us = over_us(rows, np.arange(rows.size))
    nothing_stored = (
        rows.are(Kind.FETCH_OFFSET) & rows.ended_as(Outcome.REFUSED) & (rows.value == -1)
    )
    answered = rows.ended_as(Outcome.OK) | rows.shared(refusals) | nothing_stored
    in_vain = requests[~answered[requests] & (rows.end[requests] < NEVER)]
    under_way = Line(key, rows.begin, requests).highest_before(mine, now, until)
    waited = Line(key, rows.end, in_vain).highest_before(mine, now, ended_us)
    found: Mask = chosen(until, under_way, NONE) > now
    return found | (chosen(ended_us, waited, NONE) >= _lately_us(rows, asked))


def explain(found: NotTakenOver) -> str:
    crash, assignment, later = found.crash, found.assignment, found.later
    since = ms(later.started_us - max(crash.started_us, assignment.started_us))
    return (
        f"{later.client_id}, to whom {found.lane} is assigned, was at work at {at(later)} and had not added it; its "
        f"owner {found.grant.client_id} had died at {at(crash)}, and {since} had passed since then and the assignment"
    )
