"""What a client can do for a lane at once, it does: it adds what it was granted, pulls again, calls when all is there.

*Not called*: the lane's next message is fetched, the call before it ended SUCCESS or COMMIT, and the lease is fresh.
Then its call begins within the slack of a timer (`schedule_slack_ms`). When a lane is *ready* in this sense, and what
excuses it, is that of RTY-6, which asks why it waits; here it may be for nothing at all. The client has twice as many
threads as it ever added lanes, so that no lane waits for one.

*Not pulled*: after each answer to a pull, whether or not it brought messages, but for one that is told to go on
elsewhere, the incarnation's next pull begins within the slack of a timer, under a fresh lease as above. That is judged
while the client holds no more messages of the lane than one pull may bring, so that none is too many for it, and where
nobody joined, left, died or stood still, and no fault lasted, since shortly before (the time that requests may take,
and the slack): a client may have one thread that asks for all its lanes, and wait there for a broker that is gone. Not
of the first pull, which comes when the lane is ready.

*Not added*: a client that was granted a lane which it never had before either adds it within the time that requests may
take and the slack, counted from the grant's answer, or gives it back. The grant stands if the client did not unlock the
lane, was not refused it, got no error or no answer for it, was not told an error when it asked where to start, and
nobody else was granted the lane since. Nothing is said where something stood in the way between the client and the
broker meanwhile, where one of them stood still, or where the broker or the client has died or the client was leaving.

One thread of a client may ask for all its lanes, and wait for each answer. So in both cases that time does not count
in which the client waited for the answer to a request for a lease or for an offset to start from, of whatever lane, or
for a pull that never got one, as long as requests may take. Nothing is found of a client that waits for such an answer
still. A grant to another process of the client's name, where both are told, is none to this one.

Nothing is said of a client that adds, pulls or calls no more: what never comes is the business of LIV-1 and LIV-2.
"""

import numpy as np

from specs.clauses.clause import Apart
from specs.clauses.premises import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    FRESH_LEASE,
    NO_FILTER,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, over_us, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE
from specs.facts.presence import calm_since, have_threads
from specs.facts.ready import (
    READY_COLUMNS,
    Lanes,
    Leases,
    Ready,
    could_work,
    lowest_held,
    pulled_again,
    ready_calls,
)
from specs.facts.segments import by_time, chosen, is_first, positions
from specs.facts.waits import ASKED, Waits
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LIV-5"
TITLE = "a ready lane is worked on"
STATEMENT = (
    "Where nothing is in the way, a granted lane is added within the time of a request, a lane is pulled again after "
    "each answer, and its next message is given to the listener as soon as it is there, within the slack of a timer."
)
PARTY = Party.CLIENT
KEY = Key.GROUP
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    NO_RESET,
    NOT_PAUSED,
    NO_FILTER,
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    FRESH_LEASE,
    Premise(
        "no wait of its own",
        "the consumer was told no interval between pulls (`pullInterval`), and nobody suspends it (`suspend()`); "
        "no row tells either",
    ),
    Premise("threads for all lanes", "the client has twice as many threads as it ever added lanes"),
    Premise(
        "nothing in the way",
        "no fault of the link between the client and the broker was recorded from the grant until the lane was added, "
        "and the client neither died nor left",
        told_by=frozenset({Kind.CRASH, Kind.FAULT, Kind.LEAVE}),
    ),
    Premise(
        "calm",
        "of a lane's next pull: nobody joined, left, died or stood still, and no fault lasted, since shortly before",
        told_by=frozenset({Kind.CRASH, Kind.FAULT, Kind.JOIN, Kind.LEAVE, Kind.PAUSE}),
    ),
)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#client-leases")
KINDS = frozenset(
    {Kind.ADD, Kind.PULL, Kind.DELIVER, Kind.LOCK, Kind.UNLOCK, Kind.RESET, Kind.FETCH_OFFSET}
)
SETTINGS = (
    "batch",
    "client_lease_ms",
    "max_reconsume_times",
    "pull_batch",
    "suspend_ms",
    "threads",
)
NEEDS = frozenset({Kind.ADD, Kind.DELIVER, Kind.LOCK, Kind.PULL})
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True
BY_CLIENTS = True
COLUMNS = READY_COLUMNS


class NotCalled(Finding):
    """before: the lane's last call; None where the pull found it with nothing to do.

    renewal: of the lease; None where the grant alone outlives the bound.
    """

    add: Row
    lock: Row
    renewal: Row | None
    pull: Row
    before: Row | None
    late: Row
    ready_us: int


class NotPulled(Finding):
    """pull: the last one. renewal: of the lease; None where the grant alone outlives the bound. again: the next one."""

    add: Row
    lock: Row
    renewal: Row | None
    pull: Row
    again: Row


class NotAdded(Finding):
    """lock: the first grant of those that stand. add: when the client added the lane at last."""

    lock: Row
    add: Row


def judge(rows: Rows, findings: Findings) -> None:
    """How soon a client calls and pulls for the lanes that it has, client by client."""
    if len(rows.shared(Lanes).adds):
        _calls(rows, findings)
        _pulls(rows, findings)


def _calls(rows: Rows, findings: Findings) -> None:
    """Calls of ready lanes: how long after the lane was ready?"""
    if not len(rows.shared(Lanes).calls):
        return
    ready = rows.shared(ready_calls)
    ready = ready.only(have_threads(rows, ready.late))
    until = ready.ready_us + rows.config("schedule_slack_ms", ready.late) * MS
    counts, renewal = could_work(rows, ready, until)
    findings.at_stake(ready.late[counts])
    broken = counts & (rows.started[ready.late] > until)
    findings.broken(NotCalled, **ready.roles(broken), renewal=renewal[broken])


def _pulls(rows: Rows, findings: Findings) -> None:
    """Pulls that follow an answered one: how long after its answer? Only the late ones are looked at one by one."""
    leases, waits = rows.shared(Leases), rows.shared(Waits)
    last, again, life = pulled_again(rows)
    lock = leases.granted(last)
    kept = (lock != NOWHERE) & ~leases.lost_since(lock, again, rows.begin[again])
    kept &= rows.begin[again] < rows.clock_stepped(again)
    kept &= rows.begin[again] < leases.sent_away(again, rows.begin[last])
    kept &= calm_since(rows, again, rows.ended[last])
    kept &= rows.value[last] - lowest_held(rows, again, life) <= rows.config("pull_batch", again)
    none = np.full(int(kept.sum()), NOWHERE)
    ready = Ready(again[kept], life[kept], last[kept], none, lock[kept], rows.ended[last[kept]])
    until = ready.ready_us + rows.config("schedule_slack_ms", ready.late) * MS
    for index in positions(rows.started[ready.late] > until).tolist():
        until[index] += waits.us(int(ready.late[index]), int(ready.ready_us[index]))
    counts, renewal = could_work(rows, ready, until)
    findings.at_stake(ready.late[counts])
    late = positions(counts & (rows.started[ready.late] > until))
    late = late[[not waits.last_still(place) for place in ready.late[late].tolist()]]
    findings.broken(
        NotPulled,
        add=ready.add[late],
        lock=ready.lock[late],
        renewal=renewal[late],
        pull=ready.pull[late],
        again=ready.late[late],
    )


def _added(rows: Rows, grant: int, add: int, findings: Findings) -> None:
    """A client adds a lane for the first time, of which this grant stands: how long after it was answered?"""
    context, now, begin = rows.context_of(add), int(rows.begin[add]), int(rows.begin[grant])
    client, group = rows.member_of(add)
    if now >= context.clock_stepped:
        return
    if context.is_of_an_old_life(client, group, begin, now) or context.leaving_at(
        client, group, now
    ):
        return
    epoch = int(rows.number("broker_epoch")[grant])
    broker, until_us = rows.name_of("broker", add), int(rows.started[add])
    if context.broker_died_since(broker, begin, epoch, now):
        return
    if any(rows.was_disturbed(grant, until_us, now, kind) for kind in ASKED):
        return
    waits = rows.shared(Waits)
    findings.at_stake_times(add, 1)
    granted_us = int(rows.ended[grant])
    late_us = until_us - granted_us - context.in_time_us
    if late_us > 0 and late_us > waits.us(add, granted_us) and not waits.last_still(add):
        findings.shown(NotAdded, {"lock": grant, "add": add})


def among_clients(rows: Rows, findings: Findings) -> None:
    """Each lane that a client adds for the first time, with the first grant of those that stand, group by group.

    None of them stands any more once it was given back, refused or not answered, or anybody else was granted the lane.
    Requests for leases grow with lanes and time, not with messages, so that those of a whole group fit together.
    """
    lanes, locks, ok = rows.shared(Lanes), rows.are(Kind.LOCK), rows.ended_as(Outcome.OK)
    mine = lanes.lane
    missing = rows.ended_as(Outcome.REFUSED) & (rows.value == -1)
    failed = (locks | (rows.are(Kind.FETCH_OFFSET) & ~missing)) & ~ok & (rows.end < NEVER)
    grants = positions(locks & ok & (rows.end < NEVER))
    grants = grants[by_time(rows.lane[grants], rows.end[grants])]
    anew = np.ones(len(grants), np.bool_)
    anew[1:] = mine[grants[1:]] != mine[grants[:-1]]
    add = lanes.adds[is_first(mine[lanes.adds])]
    now = rows.begin[add]
    begun = Line(rows.lane, rows.end, grants[anew]).last_before(rows.lane[add], now)
    over = Line(mine, rows.end, positions(failed)).last_before(mine[add], now)
    undone = Line(mine, rows.begin, rows.of(Kind.UNLOCK, Kind.ADD)).last_before(mine[add], now)
    since = np.maximum(chosen(rows.end, over, NONE), chosen(rows.begin, undone, NONE))
    since = np.maximum(since, chosen(rows.end, begun, NEVER) - 1)
    grant = Line(mine, rows.end, grants).first_after_with(
        mine[add], since, lambda index, lock: ~rows.of_two_processes(add[index], lock)
    )
    stands = (grant != NOWHERE) & (rows.end[grant] < now) & (mine[begun] == mine[add])
    for place, granted in zip(add[stands].tolist(), grant[stands].tolist(), strict=True):
        _added(rows, granted, place, findings)


APART = Apart(
    kinds=frozenset({*ASKED, Kind.UNLOCK, Kind.ADD, Kind.PULL}),
    judge=among_clients,
    only={Kind.PULL: ("outcome", Outcome.UNKNOWN.value)},
)


def explain(found: NotCalled | NotPulled | NotAdded) -> str:
    if isinstance(found, NotPulled):
        pull, again = found.pull, found.again
        ended_us = over_us(pull)
        return (
            f"{who(pull)} had its pull of {pull.lane} at offset {pull.queue_offset} answered at "
            f"{ended_us / 1_000_000:.3f} s and the lease since {at(found.lock)}, but pulled again only at {at(again)}, "
            f"{ms(again.started_us - ended_us)} later"
        )
    if isinstance(found, NotAdded):
        lock, add = found.lock, found.add
        return (
            f"{who(add)} was granted {add.lane} at {at(lock)} and did not give it back, but added it only "
            f"{ms(add.started_us - over_us(lock))} later, at {at(add)}"
        )
    late = found.late
    ready = f"{found.ready_us / 1_000_000:.3f} s"
    return (
        f"{who(late)} had offset {late.queue_offset} of {late.lane} ready at {ready}, the lease since {at(found.lock)} "
        f"and a thread, but delivered it only at {at(late)}, {ms(late.started_us - found.ready_us)} later"
    )
