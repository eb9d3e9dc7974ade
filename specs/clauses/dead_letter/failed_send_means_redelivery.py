"""A message whose dead letter was refused, or not answered, is delivered again: the lane does not pass it.

A send without an answer may have happened, so the message may come twice; skipping it would lose it. It stays owed
until the incarnation has delivered it again, or a further dead letter of it was acknowledged, whatever else of its
batch comes first: no call may hold, or start with, anything beyond it before. Says nothing about an incarnation that
makes no further call, and nothing once the lane was reset."""

import numpy as np

from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, Calls
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import chosen, is_first, positions
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "DLQ-6"
TITLE = "a failed dead letter means redelivery"
STATEMENT = "A message whose dead letter was not acknowledged is delivered again, never skipped."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#dead-letters",)
REFINES = ("ORD-3",)
STAKES = (Stake(Trait.FULL_DISK),)
KINDS = CALL_KINDS
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.DELIVER})
HEEDED = frozenset({Kind.PULL})
COLUMNS = CALL_COLUMNS


class Skipped(Finding):
    failed: Row
    next: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each dead letter that failed beside the first delivery beyond its message."""
    calls = rows.shared(Calls)
    stand, message = calls.tenures.stand, calls.message
    arrived = rows.ended_as(Outcome.OK)
    failed = positions(calls.letters & ~arrived)
    if not len(failed):
        return
    failed = failed[~_was_given_up(rows, calls, failed)]
    since = rows.begin[failed] + 1
    until = np.full(len(failed), NEVER, np.int64)
    tried_again = np.concatenate([calls.at, failed])  # a further failing one is told in its place
    for where, moment in (
        (tried_again, rows.begin),
        (positions(calls.letters & arrived), rows.end),
    ):
        first = Line(message, moment, where).first_after(message[failed], rows.begin[failed])
        until = np.minimum(until, chosen(moment, first, NEVER))
    offset = rows.offset[failed]
    beyond = calls.first_beyond(stand[failed], offset, since, until)
    told = np.minimum(until, chosen(rows.begin, beyond, NEVER))
    findings.at_stake(calls.while_any(stand[failed], since, told))
    order = np.lexsort((offset, beyond))
    order = order[(beyond != NOWHERE)[order]]
    order = order[is_first(beyond[order])]  # of what a delivery skips the lowest alone
    failed, beyond = failed[order], beyond[order]
    findings.at_stake(beyond[~np.isin(beyond, calls.first)])
    findings.broken(Skipped, failed=failed, next=beyond)


def _was_given_up(rows: Rows, calls: Calls, letters: Ints) -> Mask:
    """Had another dead letter of the same message been acknowledged before, and has it not been delivered since?"""
    message, begin = calls.message, rows.begin
    stored = positions(calls.letters & rows.ended_as(Outcome.OK))
    last = Line(message, rows.end, stored).last_before(message[letters], begin[letters])
    again = calls.deliveries.last_before(message[letters], begin[letters])
    found: Mask = chosen(rows.end, last, NONE) > chosen(begin, again, NONE)
    return found


def explain(found: Skipped) -> str:
    failed, new = found.failed, found.next
    ended = "was refused" if failed.outcome is Outcome.REFUSED else "was not answered"
    return (
        f"{who(new)} went on with offset {new.queue_offset} of {new.lane} at {at(new)}, although the dead letter of "
        f"offset {failed.queue_offset}, sent at {at(failed)}, {ended}"
    )
