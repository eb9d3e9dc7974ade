"""Requests: until when a broker may have acted on them."""

import numpy as np

from specs.clauses.links import Sending
from specs.facts.columns import MS, NEVER, NONE, Ints
from specs.facts.rows import KINDS, Rows
from specs.facts.segments import positions
from specs.vocabulary import Kind, Outcome


def may_arrive_until(rows: Rows, where: Ints, until_us: Ints) -> Ints:
    """Of each of these rows the last moment (µs) at which its request may have arrived.

    until_us: where nothing stood in its way, of each.
    """
    found = until_us.copy()
    held_up = rows.of_runs(lambda context: bool(context.hold_ups.since(-NEVER, NEVER)), where)
    for each in positions(held_up != 0).tolist():
        row = int(where[each])
        client, broker = rows.party_of(row)
        sending = Sending(client, broker, KINDS[rows.kind[row]], int(rows.started[row]))
        found[each] = rows.context_of(row).may_arrive_until(sending, int(until_us[each]), NEVER)
    return found


def may_apply_until(rows: Rows, where: Ints, waits_us: int | Ints = 0) -> Ints:
    """Of each of these rows the last moment (µs) at which its request may have been applied.

    Until its answer, and without an end until its client's death; answered or not, within the bound for delays after it
    was sent; and as long as anything held it up. waits_us: how long it may wait at the broker besides.
    """
    started, ended = rows.started[where], rows.ended[where]
    for each in positions(ended >= NEVER).tolist():
        row = int(where[each])
        context = rows.context_of(row)
        death = context.death_after(rows.client_of(row), int(rows.begin[row]))
        ended[each] = context.died_us.get(death, NEVER)
    bound_us = rows.config("delay_bound_ms", where) * MS + waits_us
    bound_us += rows.clocks_us(where)
    until_us = np.maximum(ended, started + bound_us)
    return may_arrive_until(rows, where, until_us)


ANSWERED = (Kind.LOCK, Kind.UNLOCK, Kind.RECEIVE, Kind.ACK, Kind.RELEASE, Kind.RENEW)


def applied_until(rows: Rows) -> Ints:
    """Of each request about a lease the last moment (µs) at which who lends it may have acted on it; of others NONE.

    By its answer, or later by the bound for delays where a frame may have come twice; one without success as long after
    it was sent, or as anything held it up.
    """
    found, where = np.full(rows.size, NONE, np.int64), rows.of(*ANSWERED)
    bound_us = rows.config("delay_bound_ms", where) * MS
    twice = rows.of_runs(lambda context: context.frames_twice, where) <= rows.end[where]
    found[where] = rows.ended[where] + np.where(twice, bound_us, 0)
    unsure = ~rows.ended_as(Outcome.OK)[where] | (rows.ended[where] >= NEVER)
    late, bound_us = where[unsure], bound_us[unsure]
    over_us = np.where(rows.ended[late] >= NEVER, rows.started[late], rows.ended[late])
    found[late] = may_arrive_until(rows, late, np.maximum(over_us, rows.started[late] + bound_us))
    return found
