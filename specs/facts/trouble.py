"""Trouble: after what a lane may be taken from a worker that lives on and does not know of it.

After a pause of its client, any fault, the death or a pause of any broker (whichever of them keeps the group), or a
step of a wall clock. And a call may be left to itself: its client was leaving when it began or leaves meanwhile, died,
or started anew.
"""

import numpy as np

from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.handovers import Handovers
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import chosen, positions
from specs.vocabulary import Kind, Outcome


def since_given(rows: Rows, calls: Ints) -> Ints:
    """Of each of these calls the row since which its worker has the lane; NOWHERE where nobody saw one.

    Its last ADD before the call; or, where one is told, the last LOCK of its client before that, if it was granted.
    """
    add = rows.shared(Handovers).added(calls)
    client = rows.lane_client
    granted = rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK)
    locks = Line(client, rows.begin, positions(granted))
    lock = locks.last_before(client[calls], chosen(rows.begin, add, NONE))
    return np.where(lock == NOWHERE, add, lock)


def undisturbed(rows: Rows, first: Ints, second: Ints) -> Mask:
    """Of each pair of calls: was neither worker in trouble since it has the lane, nor the first call left to itself?

    Asked for when the second call begins; of a worker that nobody saw be given the lane, since ever.
    """
    found = np.zeros(len(first), np.bool_)
    given = zip(since_given(rows, first).tolist(), since_given(rows, second).tolist(), strict=True)
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    for index, (calls, since) in enumerate(zip(pairs, given, strict=True)):
        context, now = rows.context_of(calls[0]), int(rows.begin[calls[1]])
        found[index] = not (
            context.clock_stepped <= now
            or _left_to_itself(rows, context, calls[0], now)
            or any(
                _in_trouble(rows, context, call, row, now)
                for call, row in zip(calls, since, strict=True)
            )
        )
    return found


def _left_to_itself(rows: Rows, context: RunContext, call: int, now: int) -> bool:
    """Does its client leave at its begin or by now, or has it died, or started anew, since it began?"""
    client, group = rows.member_of(call)
    began = int(rows.begin[call])
    joined = context.latest(client, Kind.JOIN, now)
    return (
        context.leaving_at(client, group, began)
        or context.leaving_at(client, group, now)
        or context.is_of_an_old_life(client, group, began, now)
        or (joined is not None and joined > began)
    )


def _in_trouble(rows: Rows, context: RunContext, call: int, given: int, now: int) -> bool:
    """Was the call's client or any broker in trouble, or anything injected, since it was given the lane?"""
    since, since_us = -NEVER, -NEVER
    if given != NOWHERE:
        since, since_us = int(rows.begin[given]), int(rows.started[given])
        since_us -= context.info.clock_bound_us
    client, broker = rows.party_of(call)
    return (
        context.paused_since(client, since_us, now)
        or context.fault_between(since_us, NEVER, now, (client, broker))
        or any(
            context.broker_died_between(each, since, now)
            for each in {*context.broker_died, *context.epochs}
        )
        or any(  # by these clocks it may have been later
            seq <= now and died_us >= since_us
            for deaths in context.broker_deaths.values()
            for seq, died_us in deaths
        )
        or any(context.broker_paused_since(each, since_us, now) for each in context.broker_paused)
    )
