"""What a client can do for a lane at once, it does: it adds what it was granted, pulls again, calls when all is there.

*Not called*: the lane's next message is fetched, the call before it ended SUCCESS or COMMIT, and the lease is fresh.
Then its call begins within the slack of a timer (`schedule_slack_ms`). When a lane is *ready* in this sense, and what
excuses it, is that of RTY-6, which asks why it waits; here it may be for nothing at all. The client has twice as many
threads as it ever added lanes, so that no lane waits for one.

*Not pulled*: after each answer to a pull, whether or not it brought messages, the incarnation's next pull begins within
the slack of a timer, under a fresh lease as above. That is judged while the client holds no more messages of the lane
than one pull may bring, so that none is too many for it, and where nobody joined, left, died or stood still, and no
fault lasted, since shortly before (the time that requests may take, and the slack): a client may have one thread that
asks for all its lanes, and wait there for a broker that is gone. Not of the first pull, which comes when the lane is
ready.

*Not added*: a client that was granted a lane which it never had before either adds it within the time that requests
may take and the slack, counted from the grant's answer, or gives it back. The grant stands if the client did not unlock
the lane, was not refused it, got no error or no answer for it, was not told an error when it asked where to start, and
nobody else was granted the lane since. Nothing is said where something stood in the way between the client and the
broker meanwhile, where one of them stood still, or where the broker or the client has died or the client was leaving.

One thread of a client may ask for all its lanes, and wait for each answer. So in both cases that time does not count
in which the client waited for the answer to a request for a lease or for an offset to start from, of whatever lane, or
for a pull that never got one, as long as requests may take. Nothing is found of a client that waits for such an answer
still.

Nothing is said of a client that adds, pulls or calls no more: what never comes is the business of LIV-1 and LIV-2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specs.clauses.clause import Apart
from specs.clauses.judging import Finding
from specs.clauses.premises import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NO_FILTER,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, who
from specs.facts.calls import may_be_by_hand
from specs.facts.findings import Findings
from specs.facts.presence import by_client, have_threads, were_there
from specs.facts.ready import READY_COLUMNS, Lanes, Leases, ready_calls
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import MS, NEVER, NONE, NOWHERE, Ints, Mask, by_time, positions
from specs.history.row import Row
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
    Premise(
        "fresh lease", "a grant was answered before the lane was ready, and outlives the bound"
    ),
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
ASKED = (Kind.LOCK, Kind.FETCH_OFFSET)
"""What a client asks for before it adds a lane."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class NotPulled(Finding):
    """pull: the last one. renewal: of the lease; None where the grant alone outlives the bound. again: the next one."""

    add: Row
    lock: Row
    renewal: Row | None
    pull: Row
    again: Row


@dataclass(frozen=True, slots=True)
class NotAdded(Finding):
    """lock: the first grant of those that stand. add: when the client added the lane at last."""

    lock: Row
    add: Row


def judge(rows: Rows, findings: Findings) -> None:
    """How soon a client calls and pulls for the lanes that it has, client by client."""
    lanes = rows.shared(Lanes)
    if len(lanes.adds):
        _calls(rows, lanes, findings)
        _pulls(rows, lanes, Waits(rows, lanes), findings)


def among_clients(rows: Rows, findings: Findings) -> None:
    """How soon a client adds what it was granted and nobody else was, group by group.

    Requests for leases grow with lanes and time, not with messages, so that those of a whole group fit together.
    """
    lanes = rows.shared(Lanes)
    if len(lanes.adds):
        _grants(rows, lanes, Waits(rows, lanes), findings)


APART = Apart(
    kinds=frozenset({*ASKED, Kind.UNLOCK, Kind.ADD, Kind.PULL}),
    judge=among_clients,
    only={Kind.PULL: ("outcome", Outcome.UNKNOWN.value)},
)


class Waits:
    """The times in which each client waited for an answer without which it may do nothing else for its lanes."""

    def __init__(self, rows: Rows, lanes: Lanes) -> None:
        self.rows, self.lanes = rows, lanes
        in_vain = rows.are(Kind.PULL) & rows.ended_as(Outcome.UNKNOWN) & (rows.ended < NEVER)
        where = positions(rows.are(*ASKED) | in_vain)
        self.where = where[by_time(lanes.client[where], rows.begin[where])]
        self.client = lanes.client[self.where]

    def before(self, place: int) -> Ints:
        """What the client of this row had asked before, in the order of the begins."""
        mine = int(self.lanes.client[place])
        start, stop = np.searchsorted(self.client, [mine, mine + 1]).tolist()
        asks = self.where[start:stop]
        earlier: Ints = asks[self.rows.begin[asks] < self.rows.begin[place]]
        return earlier

    def us(self, place: int, since_us: int) -> int:
        """For how long, from that time until this row, its client waited for answers that came or were given up."""
        rows, info, waited_us = self.rows, self.rows.context_of(place).info, 0
        bound_us = info.config.delay_bound_ms * MS + info.clock_bound_us
        pulls = rows.are(Kind.PULL)
        asks = self.before(place)
        for ask in asks[rows.ended[asks] < NEVER].tolist():
            until_us = min(int(rows.ended[ask]), int(rows.started[place]))
            if pulls[ask]:
                until_us = min(until_us, int(rows.started[ask]) + bound_us)
            waited_us += max(0, until_us - max(int(rows.started[ask]), since_us))
            since_us = max(since_us, until_us)
        return waited_us

    def last_still(self, place: int) -> bool:
        """Is there a request of the client, in its present life, of which the history has no end?"""
        rows, context, now = self.rows, self.rows.context_of(place), int(self.rows.begin[place])
        client, group = rows.name_of("client_id", place), rows.name_of("group", place)
        asks = self.before(place)
        endless = rows.begin[asks[rows.ended[asks] >= NEVER]].tolist()
        return any(not context.is_of_an_old_life(client, group, seq, now) for seq in endless)


def _calls(rows: Rows, lanes: Lanes, findings: Findings) -> None:
    """Calls of ready lanes: how long after the lane was ready?"""
    if not len(lanes.calls):
        return
    ready = rows.shared(ready_calls)
    ready = ready.only(have_threads(rows, lanes.client, ready.late))
    until = ready.ready_us + rows.config("schedule_slack_ms", ready.late) * MS
    outlives, renewal = rows.shared(Leases).outlive(
        ready.lock, ready.last, ready.late, _needed_us(rows, ready.late, until)
    )
    there = were_there(rows, lanes.client, ready.late, rows.begin[ready.add], ready.ready_us)
    counts = outlives & there
    findings.at_stake(ready.late[counts])
    broken = counts & (rows.started[ready.late] > until)
    findings.broken(
        NotCalled,
        {"ready_us": ready.ready_us[broken]},
        add=ready.add[broken],
        lock=ready.lock[broken],
        renewal=renewal[broken],
        pull=ready.pull[broken],
        before=ready.before[broken],
        late=ready.late[broken],
    )


def _needed_us(rows: Rows, late: Ints, until: Ints) -> Ints:
    """When a grant must have begun, at the earliest, to last until then, or until these rows. until: in µs."""
    lease_us = rows.config("client_lease_ms", late) * MS
    return np.minimum(until, rows.started[late]) - lease_us


def _pulls(rows: Rows, lanes: Lanes, waits: Waits, findings: Findings) -> None:
    """Pulls that follow an answered one: how long after its answer? Only the late ones are looked at one by one."""
    leases = rows.shared(Leases)
    last, again, life = _pairs(rows, lanes)
    lock = leases.granted(last)
    kept = (lock != NOWHERE) & ~leases.lost_since(lock, again, rows.begin[again])
    kept &= rows.begin[again] < rows.clock_stepped(again)
    kept &= _calm(rows, lanes, last, again)
    last, again, life, lock = last[kept], again[kept], life[kept], lock[kept]
    held = rows.value[last] - _lowest(rows, lanes, last, again, life)
    few = held <= rows.config("pull_batch", again)
    last, again, life, lock = last[few], again[few], life[few], lock[few]
    until = rows.ended[last] + rows.config("schedule_slack_ms", again) * MS
    for index in positions(rows.started[again] > until).tolist():
        until[index] += waits.us(int(again[index]), int(rows.ended[last[index]]))
    outlives, renewal = leases.outlive(lock, last, again, _needed_us(rows, again, until))
    there = were_there(rows, lanes.client, again, rows.begin[life], rows.ended[last])
    counts = outlives & there
    findings.at_stake(again[counts])
    late = positions(counts & (rows.started[again] > until))
    late = late[[not waits.last_still(place) for place in again[late].tolist()]]
    findings.broken(
        NotPulled,
        add=life[late],
        lock=lock[late],
        renewal=renewal[late],
        pull=last[late],
        again=again[late],
    )


def _pairs(rows: Rows, lanes: Lanes) -> tuple[Ints, Ints, Ints]:
    """Each answered pull with the next one of its life, where no other pull of the lane began or ended in between."""
    pulls = positions(rows.are(Kind.PULL) & lanes.named & (rows.offset != NONE))
    closed = pulls[rows.end[pulls] < NEVER]
    where = np.concatenate([pulls, closed])
    is_end = np.concatenate([np.zeros(len(pulls), np.bool_), np.ones(len(closed), np.bool_)])
    seq = np.where(is_end, rows.end[where], rows.begin[where])
    order = np.lexsort((is_end, seq, lanes.lane[where]))
    where, is_end, seq = where[order], is_end[order], seq[order]
    life = lanes.life(where, seq)
    pair = positions(is_end[:-1] & ~is_end[1:] & (life[:-1] >= 0) & (life[:-1] == life[1:]))
    last, again = where[pair], where[pair + 1]
    answered = (
        rows.ended_as(Outcome.OK)[last] & (rows.value[last] != NONE) & (rows.ended[last] < NEVER)
    )
    return last[answered], again[answered], life[pair][answered]


def _calm(rows: Rows, lanes: Lanes, last: Ints, again: Ints) -> Mask:
    """Had nothing disturbed the group life from shortly before the end of these last pulls on, as of the next ones?"""
    found = np.ones(len(again), np.bool_)
    for part in by_client(lanes.client[again]):
        context = rows.context_of(int(again[part[0]]))
        if context.disturbed:
            seqs, untils = context.disturbances
            place = np.searchsorted(seqs, rows.begin[again[part]], "right") - 1
            until = np.where(place >= 0, untils[np.maximum(place, 0)], -1)
            found[part] = until <= np.maximum(-1, rows.ended[last[part]] - _bound_us(context))
    return found


def _bound_us(context: RunContext) -> int:
    """How long requests may take, with the slack of a timer, and what clocks may differ by."""
    config = context.info.config
    return (config.delay_bound_ms + config.schedule_slack_ms) * MS + context.info.clock_bound_us


def _lowest(rows: Rows, lanes: Lanes, last: Ints, again: Ints, life: Ints) -> Ints:
    """The lowest offset that the client may still hold when it pulls again."""
    found = _first_asked(rows, lanes, last, life)
    calls = positions(rows.are(Kind.DELIVER) & lanes.named & (rows.offset != NONE))
    of = lanes.life(calls, rows.begin[calls])
    order = by_time(of, rows.begin[calls])
    calls, of = calls[order], of[order]
    by_hand = calls[may_be_by_hand(rows)[calls]]
    by_hand = by_hand[rows.end[by_hand] < NEVER]
    manual_since: dict[int, int] = {}
    lives = lanes.life(by_hand, rows.end[by_hand])
    for each, end in zip(lives.tolist(), rows.end[by_hand].tolist(), strict=True):
        manual_since[each] = min(end, manual_since.get(each, NEVER))
    batch = rows.config("batch", again)
    order = np.argsort(life, kind="stable")
    for mine in np.split(order, positions(np.diff(life[order])) + 1):
        if not len(mine):
            continue
        each = int(life[mine[0]])
        start, stop = np.searchsorted(of, [each, each + 1]).tolist()
        called = calls[start:stop]
        if len(called):
            before = np.searchsorted(rows.begin[called], rows.begin[again[mine]])
            highest = np.maximum.accumulate(rows.offset[called])[np.maximum(before - 1, 0)]
            counts = (before > 0) & (rows.begin[again[mine]] < manual_since.get(each, NEVER))
            raised = np.maximum(found[mine], highest + 1 - batch[mine])
            found[mine] = np.where(counts, raised, found[mine])
    return found


def _first_asked(rows: Rows, lanes: Lanes, last: Ints, life: Ints) -> Ints:
    """Where the first answered pull of each one's life asked."""
    answered = rows.are(Kind.PULL) & lanes.named & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    pulls = positions(answered & (rows.offset != NONE) & (rows.value != NONE))
    pulls = pulls[np.argsort(rows.end[pulls], kind="stable")]
    of = lanes.life(pulls, rows.end[pulls])
    if not len(life):
        return rows.offset[last]
    lives, first = np.unique(of, return_index=True)
    asked: Ints = rows.offset[pulls[first[np.searchsorted(lives, life)]]]
    return asked


def _grants(rows: Rows, lanes: Lanes, waits: Waits, findings: Findings) -> None:
    """Go through what was granted, refused, given back and asked of each lane until a client adds it first."""
    locks, asked = rows.are(Kind.LOCK), rows.are(Kind.FETCH_OFFSET)
    missing = rows.ended_as(Outcome.REFUSED) & (rows.value == -1)
    failed = asked & ~rows.ended_as(Outcome.OK) & ~missing
    at_end = positions((locks | failed) & (rows.end < NEVER))
    at_begin = positions(rows.are(Kind.UNLOCK, Kind.ADD))
    where = np.concatenate([at_begin, at_end])
    seq = np.concatenate([rows.begin[at_begin], rows.end[at_end]])
    granted = locks & rows.ended_as(Outcome.OK)
    added, had = rows.are(Kind.ADD), set[int]()
    grants: dict[int, int] = {}  # by lane at a client: the first that stands
    holders: dict[int, int] = {}  # by lane: whose
    for place in where[by_time(rows.lane[where], seq)].tolist():
        mine, lane = int(lanes.lane[place]), int(rows.lane[place])
        if granted[place]:
            last = holders.get(lane)
            if last is not None and last != mine:
                grants.pop(last, None)
            holders[lane] = mine
            grants.setdefault(mine, place)
            continue
        grant = grants.pop(mine, None)
        if added[place] and lanes.named[place]:
            if grant is not None and mine not in had:
                _added(rows, grant, place, waits, findings)
            had.add(mine)


def _added(rows: Rows, grant: int, add: int, waits: Waits, findings: Findings) -> None:
    """A client adds a lane for the first time, of which this grant stands: how long after it was answered?"""
    context, now, begin = rows.context_of(add), int(rows.begin[add]), int(rows.begin[grant])
    client, group = rows.name_of("client_id", add), rows.name_of("group", add)
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
    findings.at_stake_times(add, 1)
    granted_us = int(rows.ended[grant])
    late_us = until_us - granted_us - _bound_us(context)
    if late_us > 0 and late_us > waits.us(add, granted_us) and not waits.last_still(add):
        findings.shown(NotAdded, {"lock": grant, "add": add})


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
