"""Listener calls of two clients on one lane never overlap while the first one's lease certainly lives.

The lock is advisory: nothing stops a listener that outlives its lease. So the promise is claimed while the running
client's last grant is alive (asked for at most the broker's limit before the second call begins), the client is not
shutting down and did not crash since its call began, and the broker did not crash since either client's grant: a
restart empties the lock table, and a client goes on under a grant that the broker has forgotten. An unlock that the
running client itself sends *during* its call is no excuse: that is how two clients come to overlap. Nor is it one when
the client asks for the lane again meanwhile. An unlock that it sent before its call began has ended the lease, also
where it may arrive after the grant.

The second client looks at its lease before it calls. One that was stopped between the two begins a call, as soon as
it goes on, under a lease that it has lost meanwhile, and no client can prevent that: so a call within the time from
look to call (`guard_slack_ms`, exactly that time included; none where it is 0) after a stop is not judged. Nor is one
whose grant was answered so late that the lease is over at the broker, and was still fresh to the client, by its own
limit, that time before the call.

Some servers end a lease with its connection (RabbitMQ's single active consumer), and give the lane to the next one
while the listener runs on: so of another system than RocketMQ nothing is claimed where anything was injected since the
running client's grant.

Two processes under one client id are two clients that share a lease: the broker can't tell them apart. They are told
apart by the column `process`, where both calls have it and both have ended.

Two findings are told apart from the rest, for clients are built so. *Dropped while running*: the running client has
dropped the lane, and given it back, before its call was over (some tell the drop only once they have given it back).
*Late unlock*: it gave the lane back for an incarnation that it had dropped earlier, after it had been granted the lane
anew.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, ORDERLY, Premise
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.handovers import workers
from specs.facts.leases import LEASE_COLUMNS, Grants, named
from specs.facts.presence import brokers_died, of_old_lives, paused_since, were_leaving
from specs.facts.segments import chosen, dense, is_first, positions
from specs.plan.config import ROCKETMQ, Config
from specs.vocabulary import Key, Kind, Party

ID = "LSE-2"
TITLE = "one processor at a time"
STATEMENT = (
    "No two clients, nor two processes of one client id, run the listener of one lane at the same time before "
    "the first one's lease has run out; giving it back in mid-call is no excuse."
)
PARTY = Party.PAIR
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    BROKER_LIVES,
    Premise(
        "no cut call",
        "the client of the running call neither shuts down nor crashed",
        told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
    ),
    Premise(
        "connected",
        "nothing was injected since the running client's grant, unless the system is RocketMQ: others may end a lease "
        "with its connection",
    ),
    Premise(
        "answered in time", "the second call does not follow a grant whose answer came too late"
    ),
    Premise(
        "not stopped in between",
        "the second client did not go on, from a recorded stop, just before its call",
        told_by=frozenset({Kind.PAUSE}),
    ),
)
SOURCES = ("docs/sources.md#client-leases", "docs/sources.md#lock-table")
REFINES = ("ORD-16",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.DELIVER, Kind.DROP})
SETTINGS = ("broker_lease_ms", "client_lease_ms", "guard_slack_ms")
NEEDS = frozenset({Kind.DELIVER, Kind.LOCK})
NAMED_BY = frozenset({Kind.DROP})
COLUMNS = (*LEASE_COLUMNS, "incarnation", "op_id", "process")


def may_end_with_its_connection(config: Config) -> bool:
    """Does the server perhaps end a lease with the connection of its owner?"""
    return config.system != ROCKETMQ


EXCUSED_IF = {Kind.FAULT: may_end_with_its_connection}


class TwoProcessors(Finding):
    lock: Row
    running: Row
    second: Row


class DroppedWhileRunning(TwoProcessors):
    """drop: by the running client, of the incarnation whose call runs. unlock: its own, after that."""

    drop: Row
    unlock: Row


class LateUnlock(TwoProcessors):
    """drop: by the running client, of an earlier incarnation. unlock: its own, after the grant that followed."""

    drop: Row
    unlock: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each call beside the other workers' that end last, under the last grants of their clients."""
    at = positions(rows.are(Kind.DELIVER) & rows.shared(named))
    worker, number = dense(rows.lane, rows.client, rows.own_process)[0], rows.number("op_id")
    calls = Line(worker, rows.begin, at)
    previous = calls.last_before(worker[at], rows.begin[at])
    heads = at[(previous == NOWHERE) | (number[previous] != number[at])]
    heads = heads[rows.begin[heads] < rows.clock_stepped(heads)]
    heads = heads[~_may_have_lost_it(rows, heads)]
    lock, given_back, other, second = _leased(rows, at[is_first(worker[at])], heads)
    last = calls.last_before(worker[other], rows.begin[second])
    until = np.minimum(rows.begin[second], given_back)
    running = _running(rows, at, last, second, until)
    some = positions(running != NOWHERE)
    some = some[~_is_excused(rows, lock[some], running[some], second[some])]
    findings.at_stake(second[some])
    some = some[rows.end[running[some]] >= rows.begin[second[some]]]
    _tell(rows, findings, lock[some], running[some], second[some])


def _may_have_lost_it(rows: Rows, calls: Ints) -> Mask:
    """Of each of these calls: may its client have begun it under a lease that it had lost meanwhile?

    The broker died since its grant, or it was answered so late that the lease was over; or it was stopped just before.
    """
    grants, begin, started = rows.shared(Grants), rows.begin[calls], rows.started[calls]
    lock = grants.line.last_before(rows.lane_client[calls], begin)
    look_us = rows.config("guard_slack_ms", calls) * MS
    fresh_us = (rows.config("client_lease_ms", calls) + 1) * MS + look_us
    late = started < chosen(rows.ended, lock, NONE) + fresh_us
    late &= started > chosen(rows.started, lock, NEVER) + rows.config("broker_lease_ms", calls) * MS
    granted = positions(lock != NOWHERE)
    late[granted] |= brokers_died(rows, lock[granted], begin[granted])
    stop_us = np.where(look_us == 0, -1, look_us)  # at one moment nobody can be stopped in between
    return late | paused_since(rows, calls, started - stop_us, begin)


def _leased(rows: Rows, workers: Ints, seconds: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Each grant beside the calls of other workers that begin before it has run out, and before its client's next one.

    As (grant, when (seq) its client gave it back, a row of a worker of its client, the other's call).
    """
    grants, client = rows.shared(Grants), rows.lane_client
    grant, worker = Line(client, rows.begin, workers).all_of(client[grants.at])
    lock, line = grants.at[grant], Line(rows.lane, rows.begin, seconds)
    clocks_us = rows.clocks_us(lock)
    until_us = rows.started[lock] + rows.config("broker_lease_ms", lock) * MS - clocks_us
    last = line.last_within(rows.lane[lock], rows.started, until_us)
    until = np.minimum(grants.until[grant], chosen(rows.begin, last, NONE) + 1)

    def is_anothers(index: Ints, second: Ints) -> Mask:
        apart = rows.of_two_processes(worker[index], second) & (rows.end[second] < NEVER)
        found: Mask = apart | (rows.client[worker[index]] != rows.client[second])
        return found & (rows.started[second] <= until_us[index])

    index, second = line.between(rows.lane[lock], rows.end[lock], until, is_anothers)
    given_back = chosen(rows.begin, grants.given_back[grant[index]], NEVER)
    return lock[index], given_back, worker[index], second


def _running(rows: Rows, at: Ints, last: Ints, second: Ints, until: Ints) -> Ints:
    """The call that ends last, of those that the worker of `last` has begun until then; NOWHERE where it is over and
    `last` is not among them.

    Of two processes of one client both calls have to have ended: one without an end may be of the process before.
    """
    found = np.full(len(second), NOWHERE, np.int64)
    life = rows.shared(workers)
    alike = chosen(rows.client, last, NO_TEXT) == rows.client[second]
    for some, calls in ((~alike, at), (alike, at[rows.end[at] < NEVER])):
        some &= last != NOWHERE
        if some.any():
            line = Line(life, rows.begin, calls)
            found[some] = line.highest_before(life[last[some]], until[some], rows.by_end)
    runs = (found == last) | (chosen(rows.end, found, NONE) > chosen(rows.begin, last, NONE))
    return np.where(runs, found, NOWHERE)


def _is_excused(rows: Rows, lock: Ints, running: Ints, second: Ints) -> Mask:
    """Of each pair: may the lease be over, or the running call be left to itself, when the second one begins?"""
    now = rows.begin[second]
    found = brokers_died(rows, lock, now) | were_leaving(rows, lock, now)
    found |= of_old_lives(rows, running, now)
    faulty = rows.of_runs(
        lambda context: bool(context.faults) and may_end_with_its_connection(context.info.config),
        lock,
    )
    for index in positions(~found & (faulty != 0)).tolist():
        place, context = int(lock[index]), rows.context_of(int(lock[index]))
        party = rows.party_of(place)
        since_us = int(rows.started[place]) - context.info.clock_bound_us
        found[index] = context.fault_between(since_us, NEVER, int(now[index]), party)
    return found


def _tell(rows: Rows, findings: Findings, lock: Ints, running: Ints, second: Ints) -> None:
    """The findings by their names: has the client of the running call dropped the lane, and given it back?"""
    client, begin = rows.lane_client, rows.begin
    drop, unlock = (
        Line(client, begin, rows.of(kind)).last_before(client[running], begin[second])
        for kind in (Kind.DROP, Kind.UNLOCK)
    )
    both = (drop != NOWHERE) & (unlock != NOWHERE) & (begin[unlock] >= begin[running])
    soon_us = rows.config("schedule_slack_ms", running) * MS
    while_running = both & (rows.started[drop] - rows.started[unlock] <= soon_us)
    while_running &= rows.names_incarnation[running]
    while_running &= rows.incarnation[drop] == rows.incarnation[running]
    late = both & ~while_running & (begin[drop] < begin[lock]) & (begin[lock] < begin[unlock])
    findings.told_apart(
        {"lock": lock, "running": running, "second": second},
        (DroppedWhileRunning, while_running, {"drop": drop, "unlock": unlock}),
        (LateUnlock, late, {"drop": drop, "unlock": unlock}),
        (TwoProcessors, ~while_running & ~late, {}),
    )


def explain(found: TwoProcessors) -> str:
    lock, running, second = found.lock, found.running, found.second
    if second.client_id == running.client_id:
        return (
            f"{second.client_id}'s process {second.process} began offset {second.queue_offset} of {second.lane} at "
            f"{at(second)} while its process {running.process}, which began offset {running.queue_offset} at "
            f"{at(running)}, was still running it; they share one client id, and its lease"
        )
    why = ""
    if isinstance(found, DroppedWhileRunning | LateUnlock):
        which = (
            "the lane" if isinstance(found, DroppedWhileRunning) else "an earlier incarnation of it"
        )
        why = f", dropped {which} at {at(found.drop)} and gave it back at {at(found.unlock)}"
    return (
        f"{second.client_id} began offset {second.queue_offset} of {second.lane} at {at(second)} while "
        f"{running.client_id}, who began offset {running.queue_offset} at {at(running)}{why}, was still running it; "
        f"{running.client_id}'s lease, asked for {ms(second.started_us - lock.started_us)} before, had not run out"
    )
