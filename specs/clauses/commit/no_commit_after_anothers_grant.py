"""A client that gave a lane back does not commit on it once another client has been granted it.

Claimed where the client itself ended its lease: it had a grant, began to unlock, and somebody else was granted the lane
while the first grant would certainly still have lived. A lease that ran out, or that the broker forgot, is no fault of
the client, which may not know; nor is a second grant without any unlock (that is LSE-1). The next process of its name,
or its next life in the group, knows nothing of what it gave back; where the unlock and the commit name one incarnation,
one life did both. A commit that was refused is none: the broker fenced it off. Of one that names no incarnation nobody
knows which life of the client reports it.

RocketMQ's shutdown frees its leases before it reports its last offsets, in every version; profiles allow that. So what
a client does while it shuts down its work in the group, or where nobody records who does, is a finding of its own:
`committed-while-leaving`.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms
from specs.facts.columns import MS, NEVER, NO_TEXT, NOWHERE
from specs.facts.presence import may_be_leaving
from specs.facts.segments import chosen, positions
from specs.facts.stored import broker_died
from specs.facts.tenures import TENURE_COLUMNS, Tenures
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-5"
TITLE = "no commit after another's grant"
STATEMENT = (
    "No client commits on a lane after another client's grant, unless its own lease ended by expiry or a broker's "
    "restart."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES)
SOURCES = ("docs/sources.md#offsets", "docs/sources.md#client-leases")
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.COMMIT})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.COMMIT, Kind.LOCK})
EXCUSED_BY_ANOTHER_LIFE = frozenset({Kind.JOIN, Kind.LEAVE})
COLUMNS = TENURE_COLUMNS


class CommittedAfterwards(Finding):
    lock: Row
    unlock: Row
    others_lock: Row
    commit: Row


class CommittedWhileLeaving(CommittedAfterwards):
    """By a client that was, or may have been, shutting down."""


def judge(rows: Rows, findings: Findings) -> None:
    """Each grant that its client began to give back, beside the first grant of another since, and its later commits."""
    begin, end, named = rows.begin, rows.end, rows.shared(Tenures).named
    until = rows.clock_stepped(np.arange(rows.size))
    told = (rows.group != NO_TEXT) & (rows.client != NO_TEXT) & (begin < until)
    client = rows.lane_client
    granted = told & rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK) & (end < until)
    locks, others = positions(granted), Line(rows.lane, end, positions(granted))
    again = Line(client, end, locks).first_after(client[locks], end[locks])
    lost_at = chosen(end, again, NEVER)
    unlocks = Line(client, begin, positions(told & rows.are(Kind.UNLOCK)))
    commits = Line(client, begin, positions(told & rows.are(Kind.COMMIT) & named))
    unlock = unlocks.first_after(client[locks], end[locks])
    for lock, back, lost in zip(locks.tolist(), unlock.tolist(), lost_at.tolist(), strict=True):
        if back == NOWHERE or begin[back] > lost:
            continue
        context, group = rows.context_of(lock), rows.name_of("group", lock)
        name, since = rows.client_of(lock), int(begin[lock])
        limit_us = context.info.config.broker_lease_ms * MS - context.info.clock_bound_us
        lane = others.within(int(rows.lane[lock]), int(begin[back]), lost)
        lane = lane[(rows.client[lane] != rows.client[lock]) & (begin[lane] > end[lock])]
        lane = lane[rows.ended[lane] <= rows.started[lock] + limit_us]
        lives = (
            each
            for each in lane.tolist()
            if not context.is_of_an_old_life(name, group, since, int(end[each]))
        )
        other = next(lives, NOWHERE)
        if other != NOWHERE:
            findings.at_stake_times(other, 1)  # from here on it must not commit
        for commit in commits.within(int(client[lock]), int(begin[back]), lost).tolist():
            now = int(begin[commit])
            if context.is_of_an_old_life(name, group, since, now):
                break
            findings.at_stake_times(commit, 1)
            if other != NOWHERE and end[other] < now and not broker_died(rows, lock, now):
                kind = (
                    CommittedWhileLeaving if may_be_leaving(rows, commit) else CommittedAfterwards
                )
                roles = {"lock": lock, "unlock": back, "others_lock": other, "commit": commit}
                findings.shown(kind, roles)


def explain(found: CommittedAfterwards | CommittedWhileLeaving) -> str:
    unlock, other, commit = found.unlock, found.others_lock, found.commit
    return (
        f"{commit.client_id} committed {commit.value} for {commit.lane} at {at(commit)}, "
        f"{ms(commit.started_us - other.started_us)} after {other.client_id} had been granted the lane at {at(other)}; "
        f"{commit.client_id} had given it back itself at {at(unlock)}"
    )
