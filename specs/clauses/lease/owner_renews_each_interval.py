"""While a client works on a lane it asks for its lease again each lock interval.

Measured from the end of the last request (or from the ADD) to whatever the incarnation does next: it asks again,
pulls, delivers or commits. It must have asked by the interval (`lock_interval_ms`), the slack of a timer
(`schedule_slack_ms`) and, once for each broker of which the client has ever added a lane, the time that an answer may
take (`delay_bound_ms`): it asks one broker after the other and waits for each, so that another one that does not
answer puts this request off. It counts that it asks, not what it is answered. While nobody has seen the end of its last
request it may be waiting for it.
Of a client's incarnations of a lane only the one that it added last is judged. Silent where a request does not name its
incarnation, in a shutdown (some clients stop renewing first; one that names no group is of all; what a client adds or
asks for in the midst of it goes with it), and once the lane was dropped: then nothing is owed any more. Silent as well
where something may have hindered the client since the last request, or hidden its requests from who looks on between it
and the broker: a crash or a pause of either, or a fault of the link, also one that was over at most the time of an
answer before that request. It is judged again from its next request on.
"""

import numpy as np

from specs.clauses import rows as of_row
from specs.clauses.premises import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.columns import MS, NEVER, NOWHERE, Ints, Mask
from specs.facts.leases import named
from specs.facts.presence import brokers_died, count_brokers, of_old_lives, were_leaving
from specs.facts.segments import Segments, positions
from specs.vocabulary import Key, Kind, Party

ID = "LSE-13"
TITLE = "the owner renews each interval"
STATEMENT = "A client that works on a lane asks for its lease again each lock interval."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    Premise(
        "at work",
        "the client is not shutting down, did not crash, and has not dropped the lane",
        told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
    ),
    Premise(
        "link at work",
        "no fault of the client's link to the broker since; a recorded one silences the clause",
        told_by=frozenset({Kind.FAULT}),
    ),
)
SOURCES = ("docs/sources.md#client-leases",)
KINDS = frozenset({Kind.ADD, Kind.DROP, Kind.LOCK, Kind.DELIVER, Kind.PULL, Kind.COMMIT})
SETTINGS = ("lock_interval_ms",)
NEEDS = frozenset({Kind.ADD, Kind.LOCK})
TOLD_OF_REFUSED_COMMITS = True
COLUMNS = ("incarnation",)


class NotRenewed(Finding):
    """last: the request, or the ADD, after which the client did not ask. later: what it did instead, or at last."""

    last: Row
    later: Row


def judge(rows: Rows, findings: Findings) -> None:
    """What each incarnation does, beside the last time that its client asked for the lease, or added the lane."""
    last, work = _since_asked(rows)
    due_us = rows.ended[last] + _interval_us(rows, work)
    late = (rows.end[last] < NEVER) & (rows.started[work] > due_us)
    late[late] = rows.started[work[late]] > due_us[late] + _round_us(rows, work[late])
    # Once it was late it is judged again from its next request on.
    judged = Segments(last).count_before(late) == 0
    judged &= late | rows.are(Kind.LOCK)[work]
    last, work, late = last[judged], work[judged], late[judged]
    hindered = _is_hindered(rows, last, work)
    findings.at_stake(work[~hindered])
    wrong = late & ~hindered
    findings.broken(NotRenewed, last=last[wrong], later=work[wrong])


def _since_asked(rows: Rows) -> tuple[Ints, Ints]:
    """What a client does in the incarnation that it added last, and its last request for the lease, or that ADD.

    Without what comes after a DROP, or a request that names no incarnation or another one.
    """
    client, begin, told = rows.lane_client, rows.begin, rows.names_incarnation
    mine, locks = rows.shared(named), rows.are(Kind.LOCK)
    adds = rows.are(Kind.ADD) & mine & told
    add = Line(client, begin, positions(adds)).last_before(client, begin)
    asks = locks & told & ((add == NOWHERE) | (rows.incarnation[add] == rows.incarnation))
    line = Line(client, begin, positions(adds | ((locks | rows.are(Kind.DROP)) & mine)))
    work = positions(mine & told & ~rows.are(Kind.ADD, Kind.DROP) & rows.are(*KINDS))
    work = work[begin[work] < rows.clock_stepped(work)]
    last = line.last_before(client[work], begin[work])
    known = (last != NOWHERE) & (adds | asks)[last]
    known &= rows.incarnation[last] == rows.incarnation[work]
    return last[known], work[known]


def _interval_us(rows: Rows, where: Ints) -> Ints:
    return (rows.config("lock_interval_ms", where) + rows.config("schedule_slack_ms", where)) * MS


def _round_us(rows: Rows, where: Ints) -> Ints:
    """So long requests to each broker of the client may take, one after the other."""
    brokers = np.maximum(count_brokers(rows, where), 1)
    return brokers * rows.config("delay_bound_ms", where) * MS


def _is_hindered(rows: Rows, last: Ints, work: Ints) -> Mask:
    """May something have kept the client from asking since, or its requests from being seen?"""
    now = rows.begin[work]
    found = were_leaving(rows, work, now) | of_old_lives(rows, last, now)
    found |= brokers_died(rows, last, now)
    for index in positions(~found).tolist():
        until_us = int(rows.started[work[index]])
        found[index] = rows.was_disturbed(int(last[index]), until_us, int(now[index]))
    return found


def explain(found: NotRenewed) -> str:
    last, later = found.last, found.later
    begun = "added it" if last.kind is Kind.ADD else "asked for its lease"
    age = ms(later.started_us - of_row.over_us(last))
    return (
        f"{who(later)} was at work on {later.lane} at {at(later)} ({later.kind}), {age} after it had {begun}, and had "
        "not asked for its lease since"
    )
