"""A first delivery never lies beyond a message that is known to be there, is wanted, and that nobody was given.

Known is a message by its send: acknowledged, at an offset, plain (neither half a transaction nor delayed, and of a
producer that sends no such halves to the queue). What is sent within a transaction is a half message, however the
system calls it (docs/history.md): who records it as a plain send says that it counts whatever becomes of the rest.

Judged of each delivery that lies beyond all that its incarnation was given before, while nobody moved the incarnation
(`specs.facts.tenures`). *Passed over* is what lies between that and the highest before it; of an incarnation's first
delivery, between where its ADD says that it begins and the delivery. A look-up of the lane that began in between may
set it elsewhere, whoever made it, and then nothing is said. And at a handover, where the next one's ADD was seen: what
lies between the highest that anybody of the group was given and where that ADD says that it begins (its first delivery,
where it does not say), unless a commit or a look-up named a higher offset; only where the group is known to begin with
the first message, as without a stored offset it else goes on at the end. Nobody was given a message that was neither
delivered, handed out, acknowledged (by its offset, or by its id) nor given up in the lane before. An application that
seeks moves its lane as an operator does (RESET).

Only what was sent before the delivery began counts. Nothing is said of what was removed on purpose (TRIM), or lies
below where a pull of the group, begun before the delivery, was told to go on, or where a commit of the incarnation
tells that it was moved (`detail=corrected`); nor of what was sent before a broker died (a crash, or a new epoch).
Possible at most is

- where another system than RocketMQ may keep of each key the last message only (it tells neither `compaction` as false,
  nor Kafka's `cleanup.policy` as `delete`), a message whose key comes again further on, or by a send of which nobody
  knows where it lies (one that was refused counts if it began later);
- of another system, what was sent before a fault ended or a broker stood still: several nodes may have lost it;
- what is as old as the system keeps it (`keep_ms`, `retention.ms`), or older, where it tells that;
- what may have been handed out by an answer that was lost;
- what was passed over at a handover, where commits or look-ups are not recorded, or the history begins late.

After an operator's reset of the lane nothing is said, nor of a group that wants a part of the messages, by its
configuration or by what a member says when it joins.
"""

import numpy as np

from specs.clauses.premises import NO_FILTER, NO_RESET, NOT_REMOVED, ORDERLY, Premise
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, start_of, who
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.gone import floor_before
from specs.facts.messages import (
    GIVEN,
    MESSAGE_COLUMNS,
    Messages,
    may_be_compacted,
    may_be_lost,
    safe_since,
)
from specs.facts.segments import Segments, chosen, dense, first_fitting, first_of_each, positions
from specs.facts.tenures import TENURE_COLUMNS, TENURE_KINDS, Tenures
from specs.plan.config import Config
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-17"
TITLE = "nothing is passed over"
STATEMENT = "No first delivery lies beyond a message that was sent, is wanted, and that nobody of the group was given."
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (
    ORDERLY,
    NO_RESET,
    NO_FILTER,
    NOT_REMOVED,
    Premise(
        "not lost", "no broker died since the message was sent", told_by=frozenset({Kind.CRASH})
    ),
)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#kafka-position")
KINDS = TENURE_KINDS | GIVEN | {Kind.SEND, Kind.COMMIT, Kind.FETCH_OFFSET}
NEEDS = frozenset({Kind.DELIVER, Kind.SEND})
HEEDED = KINDS - NEEDS - {Kind.ADD, Kind.RESET}
CONCLUDES_FROM_ABSENCE = True
COLUMNS = (*TENURE_COLUMNS, *MESSAGE_COLUMNS)


class PassedOver(Finding):
    """before: the delivery, or the ADD, from which on the incarnation goes. message: its send. beyond: the delivery."""

    before: Row
    message: Row
    beyond: Row


class PassedOverAtHandover(PassedOver):
    """before: the highest that anybody was given until then."""


def judge(rows: Rows, findings: Findings) -> None:
    """Each delivery beyond all before it in its stand, and what lies between that and the highest before."""
    tenures = rows.shared(Tenures)
    calls = positions(tenures.named & rows.are(Kind.DELIVER) & (rows.offset >= 0))
    calls = calls[tenures.reset[calls] == NOWHERE]
    calls = calls[_want_all(rows, calls)]
    if not len(calls):
        return
    stand = Segments(tenures.stand[calls])
    before = chosen(calls, stand.highest_before(rows.offset[calls]), NOWHERE)
    follows = before != NOWHERE
    further = follows & (rows.offset[calls] > rows.offset[before])
    further &= ~_looked_up(rows, before, calls)
    beyond, before = calls[further], before[further]
    _judge(rows, findings, PassedOver, before, beyond, rows.offset[before] + 1)
    first = calls[~follows & tenures.unmoved[calls]]
    add = tenures.add[first]
    start = np.maximum(rows.value[add], 0)
    told = rows.value[add] != NONE
    mine = told & ~_looked_up(rows, add, first)
    _judge(rows, findings, PassedOver, add[mine], first[mine], start[mine])
    _judge_handovers(rows, findings, first, np.where(told, start, rows.offset[first]))


def _judge_handovers(rows: Rows, findings: Findings, first: Ints, start: Ints) -> None:
    """What lies between the highest that was given in the lane and where the next incarnation begins."""
    known = rows.of_runs(lambda context: _begins_with_the_first(context.info.config), first) != 0
    first, start = first[known], start[known]
    given = Line(rows.lane, rows.begin, positions(rows.are(Kind.DELIVER) & (rows.offset >= 0)))
    before = given.highest_before(rows.lane[first], rows.begin[first], rows.offset)
    follows = before != NOWHERE
    first, start, before = first[follows], start[follows], before[follows]
    tell = rows.are(Kind.COMMIT, Kind.FETCH_OFFSET) & ~rows.ended_as(Outcome.REFUSED)
    low = np.maximum(rows.offset[before] + 1, _named(rows, first, rows.lane, tell))
    sure = rows.of_runs(
        lambda context: (
            not context.info.begins_late and context.tells(Kind.COMMIT, Kind.FETCH_OFFSET)
        ),
        first,
    )
    _judge(rows, findings, PassedOverAtHandover, before, first, low, start, sure != 0)


def _judge(
    rows: Rows,
    findings: Findings,
    kind: type[PassedOver],
    before: Ints,
    beyond: Ints,
    low: Ints,
    high: Ints | None = None,
    certain: Mask | None = None,
) -> None:
    """Is there a message from `low` on and below `high` (the delivery itself), of which nobody had been given any?"""
    messages = rows.shared(Messages)
    findings.at_stake(beyond)
    high = rows.offset[beyond] if high is None else np.minimum(high, rows.offset[beyond])
    low = np.maximum(low, floor_before(rows, rows.lane[beyond], rows.begin[beyond]))
    tenures = rows.shared(Tenures)
    moved = rows.are(Kind.COMMIT) & rows.corrected & tenures.named
    low = np.maximum(low, _named(rows, beyond, tenures.number, moved))
    start, stop = messages.between(rows.queue[beyond], low, high)
    where = positions(start < stop)
    if not len(where):
        return
    safe = np.asarray([safe_since(rows, call) for call in beyond[where].tolist()], np.int64)

    def is_missed(index: Ints, place: Ints) -> Mask:
        message, mine = messages.at[place], beyond[where[index]]
        moment = rows.begin[mine]
        known = (rows.begin[message] > safe[index]) & (rows.end[message] < NEVER)
        known &= rows.begin[message] < moment
        given = messages.given_before(rows.lane[mine], message, moment)
        return known & ~given

    found = first_fitting(start[where], stop[where], is_missed)
    which = where[found != NOWHERE]
    message = messages.at[found[found != NOWHERE]]
    sure = np.ones(len(which), np.bool_) if certain is None else certain[which]
    sure &= ~(
        may_be_compacted(rows, message)
        | may_be_lost(rows, message, beyond[which])
        | _may_be_handed_out(rows, beyond[which])
    )
    findings.broken(kind, certain=sure, before=before[which], message=message, beyond=beyond[which])


def _looked_up(rows: Rows, since: Ints, until: Ints) -> Mask:
    """Of each pair of rows of a lane: did a look-up of the lane begin between them?"""
    looks = Line(rows.lane, rows.begin, rows.of(Kind.FETCH_OFFSET))
    lane = rows.lane[until]
    found: Mask = looks.count_before(lane, rows.begin[until]) > looks.count_before(
        lane, chosen(rows.begin, since, NEVER)
    )
    return found


def _want_all(rows: Rows, calls: Ints) -> Mask:
    """Of each of these calls: has no member of its group told that it wants a part of the messages?"""
    group, count = dense(rows.run[calls], rows.group[calls])
    firsts = calls[first_of_each(group, count)].tolist() if count else []
    all_of = [
        not rows.context_of(call).is_filtered(rows.name_of("group", call), NEVER - 1)
        for call in firsts
    ]
    return np.asarray(all_of, np.bool_)[group]


def _begins_with_the_first(config: Config) -> bool:
    return "consume_from" not in config.untold and config.consume_from == "first"


def _named(rows: Rows, calls: Ints, key: Ints, some: Mask) -> Ints:
    """Of each of these calls the highest offset that some rows of its key had named when it began; else 0."""
    line = Line(key, rows.begin, positions(some & (rows.value > 0)))
    return chosen(rows.value, line.highest_before(key[calls], rows.begin[calls], rows.value), 0)


def _may_be_handed_out(rows: Rows, beyond: Ints) -> Mask:
    """Had an answer been lost, before the call, by which something was handed out in its lane?"""
    lost = rows.are(Kind.RECEIVE) & (rows.offset == NONE)
    line = Line(rows.lane, rows.begin, positions(lost))
    found: Mask = line.count_before(rows.lane[beyond], rows.begin[beyond]) > 0
    return found


def explain(found: PassedOver) -> str:
    before, message, beyond = found.before, found.message, found.beyond
    what = (
        f"{who(beyond)} was given offset {beyond.queue_offset} of {beyond.lane} at {at(beyond)}, beyond message "
        f"{message.message_id} at offset {message.queue_offset}, sent at {at(message)}, which nobody of {beyond.group} "
        f"had been given"
    )
    if before.kind is Kind.ADD:
        return f"{what}; it had begun at offset {start_of(before)} at {at(before)}"
    mine = "the same incarnation" if type(found) is PassedOver else who(before)
    return f"{what}; {mine} had been given offset {before.queue_offset} at {at(before)}"
