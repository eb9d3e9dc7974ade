"""A client starts a listener call only under a lease that was granted at most its own limit ago.

What the client knows of its lease is its last certain answer and its own unlocks: (a) a refusal takes the lease
away (only if its request is newer than that of the grant: a late answer to an older request says nothing, and an
error code says nothing either); (b) a grant is good for the client's limit, measured from its answer in whole
milliseconds, exactly the limit included; (c) a lane that was added without any answered lock has no lease; (d) an
own unlock ends it at once. Between the guard and the call the client must not have been paused.

A process that dies, or has shut down, takes what it knew with it: the next one of its name begins without a lease,
where the rows of the death or the shutdown, of the last answer and of the call name one process, and the shutdown was
over when the client came again. Where they do not, it may be a process that goes on, and nothing is claimed. Who begins
without a lease is found by the ADD of the call's incarnation: a call of which no ADD is seen since was perhaps granted
the lane earlier. What one process of a client id was answered another one, where rows name two, does not know.

The guard looks first, and the begin of the call is recorded after it; a process can lose its core, or collect its
garbage, in between. The configuration says how long that may take (`guard_slack_ms`; nothing in virtual time): a grant
may be older by so much, and a refusal that was answered so shortly before the call tells it nothing: it goes by what
it knew before. An unlock does at once: the client itself sends it, and whoever of its threads does so can wait for the
one that has looked.

Two findings are told apart, for clients are built so. *Late unlock*: the unlock after which the call began was for an
incarnation that the client had dropped earlier, and it had been granted the lane anew in between. *Called while
leaving*: it was shutting down, or may have been, and gave its lanes back while their loops went on.
"""

import numpy as np

from specs.clauses import rows as of_row
from specs.clauses.premises import NO_WALL_CLOCK_STEP, NOT_PAUSED, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.columns import MS, NONE, NOWHERE, Ints, Mask
from specs.facts.leases import LEASE_COLUMNS, LeaseNews, named, over_us, refusals
from specs.facts.presence import may_be_leaving, of_old_lives, of_processes_before, paused_since
from specs.facts.segments import chosen, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-3"
TITLE = "a call under a fresh grant"
STATEMENT = (
    "A listener call starts only under a grant whose answer came at most the client's limit ago."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_WALL_CLOCK_STEP, NOT_PAUSED)
SOURCES = ("docs/sources.md#client-leases", "docs/sources.md#orderly-loop")
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.DELIVER, Kind.ADD, Kind.DROP})
SETTINGS = ("client_lease_ms", "guard_slack_ms")
NEEDS = frozenset({Kind.DELIVER, Kind.LOCK})
EXCUSED_BY = frozenset({Kind.CRASH})
EXCUSED_BY_ANOTHER_LIFE = frozenset({Kind.JOIN, Kind.LEAVE})
LOOKS_BACK = True
COLUMNS = (*LEASE_COLUMNS, "incarnation", "op_id", "process")


class NoLease(Finding):
    """last: the answer, the unlock or the add after which there was no lease."""

    last: Row
    call: Row


class LateUnlock(NoLease):
    """drop: of an earlier incarnation. grant: after it, and before the unlock `last`."""

    drop: Row
    grant: Row


class CalledWhileLeaving(NoLease):
    """After the unlock of a client that was, or may have been, shutting down."""


def judge(rows: Rows, findings: Findings) -> None:
    """Each call beside what its client knew last of its lease."""
    client, number, begin = rows.lane_client, rows.number("op_id"), rows.begin
    at = positions(rows.are(Kind.DELIVER) & rows.shared(named))
    previous = Line(client, begin, at).last_before(client[at], begin[at])
    call = at[(previous == NOWHERE) | (number[previous] != number[at])]
    call = call[begin[call] < rows.clock_stepped(call)]
    last, granted = _heard(rows, call), rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK)
    answers = Line(client, rows.end, positions(granted | rows.shared(refusals)))
    answered = answers.count_before(client[call], begin[call]) > 0
    before = positions(last != NOWHERE)
    before = before[of_old_lives(rows, last[before], begin[call[before]])]
    gone = before[of_processes_before(rows, last[before], call[before])]
    judged = (last == NOWHERE) | ~rows.of_two_processes(last, call)
    judged[before] = False
    last[gone], answered[gone], judged[gone] = NOWHERE, False, True
    findings.at_stake(call[judged & answered])
    last = np.where(last == NOWHERE, _begun_without(rows, call), last)
    some = positions(judged & (last != NOWHERE) & ~_is_fresh(rows, last, call))
    paused_us = np.where(rows.are(Kind.LOCK)[last], over_us(rows, last), rows.started[last])
    some = some[~paused_since(rows, call[some], paused_us[some], begin[call[some]])]
    findings.at_stake(call[some[~answered[some]]])
    _tell(rows, findings, last[some], call[some])


def _heard(rows: Rows, call: Ints) -> Ints:
    """What each call certainly goes by, NOWHERE if nothing: its guard may have looked before a refusal came."""
    news, refused, begin = rows.shared(LeaseNews), rows.shared(refusals), rows.begin[call]
    look_us = rows.config("guard_slack_ms", call) * MS

    def is_heard(index: Ints, refusal: Ints) -> Mask:
        age_us: Ints = rows.started[call[index]] - over_us(rows, refusal)
        return age_us > look_us[index]

    last = news.of(~refused).last_before(news.client[call], begin)
    refusal = news.of(refused).last_before_with(news.client[call], begin, is_heard)
    later = chosen(news.moment, refusal, NONE) > chosen(news.moment, last, NONE)
    return np.where(later, refusal, last)


def _begun_without(rows: Rows, call: Ints) -> Ints:
    """The ADD of the call's incarnation, since which its process has had no answer; else NOWHERE."""
    named_adds = positions(rows.are(Kind.ADD) & rows.names_incarnation)
    client = rows.lane_client
    add = Line(client, rows.begin, named_adds).last_before(client[call], rows.begin[call])
    mine = positions((add != NOWHERE) & (rows.incarnation[add] == rows.incarnation[call]))
    mine = mine[~of_old_lives(rows, add[mine], rows.begin[call[mine]])]
    found = np.full(len(call), NOWHERE, np.int64)
    found[mine] = add[mine]
    return found


def _is_fresh(rows: Rows, last: Ints, call: Ints) -> Mask:
    """Is it a grant that is fresh when the call begins?"""
    limits_ms = rows.config("client_lease_ms", call) + 1 + rows.config("guard_slack_ms", call)
    granted = rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK)
    found: Mask = granted[last] & (rows.started[call] - over_us(rows, last) < limits_ms * MS)
    return found


def _tell(rows: Rows, findings: Findings, last: Ints, call: Ints) -> None:
    """The findings by their names: for what, and when, did the client give the lane back?"""
    client, begin, locks = rows.lane_client, rows.begin, rows.are(Kind.LOCK)
    given_back = rows.are(Kind.UNLOCK)[last]
    grant = rows.shared(LeaseNews).of(locks).last_before(client[call], begin[last])
    drop = Line(client, begin, rows.of(Kind.DROP)).last_before(
        client[call], chosen(rows.end, grant, NONE)
    )
    of_another = rows.incarnation[drop] != rows.incarnation[call]
    late = given_back & (drop != NOWHERE) & rows.ended_as(Outcome.OK)[grant] & of_another
    leaves = given_back & ~late
    leaves[leaves] = [may_be_leaving(rows, each) for each in call[leaves].tolist()]
    findings.told_apart(
        {"last": last, "call": call},
        (NoLease, ~late & ~leaves, {}),
        (CalledWhileLeaving, leaves, {}),
        (LateUnlock, late, {"drop": drop, "grant": grant}),
    )


def explain(found: NoLease) -> str:
    last, call = found.last, found.call
    started = f"{who(call)} started offset {call.queue_offset} of {call.lane} at {at(call)}"
    if last.kind is Kind.ADD:
        return f"{started} without any lease: it had added the lane at {at(last)} and was never granted it"
    if isinstance(found, LateUnlock):
        later = ms(call.started_us - last.started_us)
        return (
            f"{started}, {later} after it had begun to give the lease back: it did so for "
            f"what it had dropped at {at(found.drop)}, and had been granted the lane anew at {at(found.grant)}"
        )
    if last.kind is Kind.UNLOCK:
        return f"{started}, {ms(call.started_us - last.started_us)} after it had begun to give the lease back"
    age = ms(call.started_us - of_row.over_us(last))
    if last.outcome is Outcome.OK:
        return f"{started}, {age} after its last grant was answered"
    return f"{started}, {age} after it had been refused the lease"
