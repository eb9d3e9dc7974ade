"""LIV-5 over columns: which calls are those of ready lanes is said as for RTY-6, for all at once.

Of these only the late ones, and those that something may excuse, are looked at one by one. Grants that may stand
unused are followed through the rows of the lanes that a client adds for the first time.
"""

from __future__ import annotations

import numpy as np

from spark_checkers.clauses.retry.other_lanes_go_on import COLUMNS, Lanes, Ready, Renewals, ready_calls
from spark_checkers.rows import MS, NEVER, NONE, Findings, Rows
from spark_checkers.segments import NOWHERE, Mask
from spark_checkers.twin import Twin
from specs.clauses.links import Sending
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    lanes = Lanes(rows)
    if len(lanes.adds):
        _calls(rows, lanes, findings)
        _grants(rows, lanes, findings)


# ---------------------------------------------------------------- not called


def _calls(rows: Rows, lanes: Lanes, findings: Findings) -> None:
    calls = np.flatnonzero(rows.are(Kind.DELIVER) & lanes.named & (rows.offset != NONE))
    if not len(calls):
        return
    calls = calls[np.lexsort((rows.begin[calls], lanes.group[calls]))]
    ready = ready_calls(rows, lanes, calls)
    ready = ready.only(rows.begin[ready.late] < rows.clock_stepped(ready.late))
    ready = ready.only(_have_threads(rows, lanes, ready))
    until = ready.ready_us + rows.config("schedule_slack_ms", ready.late) * MS
    needed = np.minimum(until, rows.started[ready.late]) - rows.config("client_lease_ms", ready.late) * MS
    is_late = rows.started[ready.late] > until
    needs_renewal = rows.started[ready.lock] < needed
    plain = ~is_late & ~needs_renewal & _nothing_happened_to(rows, lanes, ready)
    findings.at_stake(ready.late[plain])
    renewals = Renewals(rows, lanes)
    for index in np.flatnonzero(~plain).tolist():
        late, add, pull, before, lock = (
            int(column[index]) for column in (ready.late, ready.add, ready.pull, ready.before, ready.lock)
        )
        renewal = NOWHERE
        if needs_renewal[index]:
            lease_us = rows.config_of(late).client_lease_ms * MS
            renewal = renewals.of(lock, before if before != NOWHERE else pull, late, lease_us)
            if renewal == NOWHERE or rows.started[renewal] < needed[index]:
                continue
        if not _was_there(rows, late, add, int(ready.ready_us[index])):
            continue
        findings.at_stake_times(late, 1)
        if is_late[index]:
            evidence = (add, lock, renewal, pull, before, late)
            findings.violation([place for place in evidence if place != NOWHERE])


def _by_client(lanes: Lanes, ready: Ready) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """The indexes of these calls, client by client."""
    client = lanes.client[ready.late]
    order = np.argsort(client, kind="stable")
    return [part for part in np.split(order, np.flatnonzero(np.diff(client[order])) + 1) if len(part)]


def _have_threads(rows: Rows, lanes: Lanes, ready: Ready) -> Mask:
    """Had the client, at each call, twice as many threads as it had ever added lanes?"""
    found = np.zeros(len(ready.late), np.bool_)
    for part in _by_client(lanes, ready):
        first = int(ready.late[part[0]])
        context = rows.context_of(first)
        added = np.asarray(context.lanes.get(rows.name_of("client_id", first), ()), np.int64)
        count = np.searchsorted(added, rows.begin[ready.late[part]], "right")
        found[part] = 2 * count <= context.info.config.threads
    return found


def _nothing_happened_to(rows: Rows, lanes: Lanes, ready: Ready) -> Mask:
    """Is there no pause, death or leave of the client in the whole run?"""
    found = np.zeros(len(ready.late), np.bool_)
    for part in _by_client(lanes, ready):
        first = int(ready.late[part[0]])
        context, client = rows.context_of(first), rows.name_of("client_id", first)
        ends = (kind in (Kind.CRASH, Kind.LEAVE) for _, kind in context.client_state.get(client, ()))
        found[part] = not context.paused.get(client) and not any(ends)
    return found


def _was_there(rows: Rows, late: int, add: int, ready_us: int) -> bool:
    context, client, now = rows.context_of(late), rows.name_of("client_id", late), int(rows.begin[late])
    if context.leaving_at(client, rows.name_of("group", late), now):
        return False
    if context.client_died_between(client, int(rows.begin[add]), now):
        return False
    return not context.paused_since(client, ready_us, now)


# ---------------------------------------------------------------- not added


def _grants(rows: Rows, lanes: Lanes, findings: Findings) -> None:
    """Go through what was granted, refused, given back and asked of each lane until a client adds it first."""
    locks, asked = rows.are(Kind.LOCK), rows.are(Kind.FETCH_OFFSET)
    missing = rows.ended_as(Outcome.REFUSED) & (rows.value == -1)
    failed = asked & ~rows.ended_as(Outcome.OK) & ~missing
    at_end = np.flatnonzero((locks | failed) & (rows.end < NEVER))
    at_begin = np.flatnonzero(rows.are(Kind.UNLOCK, Kind.ADD))
    where = np.concatenate([at_begin, at_end])
    seq = np.concatenate([rows.begin[at_begin], rows.end[at_end]])
    granted = locks & rows.ended_as(Outcome.OK)
    added, had = rows.are(Kind.ADD), set[int]()
    grants: dict[int, int] = {}  # by lane at a client: the first that stands
    holders: dict[int, int] = {}  # by lane: whose
    for place in where[np.lexsort((seq, rows.lane[where]))].tolist():
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
                _added(rows, grant, place, findings)
            had.add(mine)


def _added(rows: Rows, grant: int, add: int, findings: Findings) -> None:
    context, now, begin = rows.context_of(add), int(rows.begin[add]), int(rows.begin[grant])
    config, client, group = context.info.config, rows.name_of("client_id", add), rows.name_of("group", add)
    if now >= context.clock_stepped:
        return
    if context.is_of_an_old_life(client, group, begin, now) or context.leaving_at(client, group, now):
        return
    epoch = int(rows.number("broker_epoch")[grant])
    broker, until_us = rows.name_of("broker", add), int(rows.started[add])
    if context.broker_died_since(broker, begin, epoch, now):
        return
    asked = (Sending(client, broker, kind, int(rows.started[grant])) for kind in (Kind.LOCK, Kind.FETCH_OFFSET))
    if any(context.is_disturbed(each, until_us, now) for each in asked):
        return
    findings.at_stake_times(add, 1)
    bound_us = (config.delay_bound_ms + config.schedule_slack_ms) * MS + context.info.clock_bound_us
    if until_us - rows.ended[grant] > bound_us:
        findings.violation([grant, add], name="not-added")


TWIN = Twin("LIV-5", COLUMNS, kernel)
find = TWIN.find
