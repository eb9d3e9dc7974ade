"""A half message is seen only after its commit, and is asked about at most as often as the configuration says.

Seen: delivered, or read from the topic that it was sent to, from the begin of the delivery or until the end of the
read. A commit that was not refused counts from its begin, whether or not it was answered, and whoever sent it: any
producer of the group may answer a broker's question. A message that was also sent in the ordinary way, at any time
before, may be seen; where the numbers of its sends (`attempt`) tell of a try that is not in the history, that may have
been one, or have been committed, and what is found is at most possible. How often the broker asked is what the question
itself says: a frame that comes twice is not a second question. A rollback is not needed as evidence: what was rolled
back was never committed. Where both were said, the clause is silent, for a half message that was sent twice has two
transactions. With the clocks of several hosts a commit that another clock times less than the bound later may have come
first. That a committed message comes is the business of SND-13.
"""

import numpy as np

from specs.clauses.premises import CLOSED_WORLD, NOTHING_TAKEN_BACK
from specs.clauses.stored import COMMIT
from specs.clauses.terms import Finding, Findings, Row, Rows, at, saw, who
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints
from specs.facts.segments import dense
from specs.facts.stored import copies as copies_of
from specs.facts.stored import halves, refused, sightings, tried_unseen
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-6"
TITLE = "a half message waits for its commit"
STATEMENT = (
    "A half message is not seen unless it was committed, and its producer is asked about it at most as often as "
    "configured."
)
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (CLOSED_WORLD, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#transactions",)
STAKES = (Stake(Trait.HALF),)
KINDS = frozenset({Kind.SEND, Kind.END_TRANSACTION, Kind.CHECK, Kind.DELIVER, Kind.READ})
SETTINGS = ("transaction_check_max",)
NEEDS = frozenset({Kind.SEND})
COLUMNS = ("message_id", "origin_id", "outcome", "code", "detail", "value", "attempt")


class SeenUncommitted(Finding):
    half: Row
    seen: Row


class AskedTooOften(Finding):
    asked: Row
    most: int


def judge(rows: Rows, findings: Findings) -> None:
    """Per message and topic: the first half send, and the first moment from which it may be seen."""
    copies = copies_of(rows)
    sends = rows.are(Kind.SEND) & ~copies
    half = sends & halves(rows)
    if not (half | rows.are(Kind.CHECK)).any():
        return
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    commit = rows.are(Kind.END_TRANSACTION) & (rows.value == COMMIT)
    commit &= ~rows.ended_as(Outcome.REFUSED) & ~copies
    first_half = np.full(count, NOWHERE, np.int64)
    begun = np.full(count, NEVER, np.int64)
    for one in np.flatnonzero(half).tolist():  # few messages are half ones
        if rows.begin[one] < begun[message[one]]:
            begun[message[one]], first_half[message[one]] = rows.begin[one], one
    free = np.full(count, NEVER, np.int64)
    frees = np.flatnonzero((sends & ~half & ~refused(rows)) | commit)
    np.minimum.at(free, message[frees], rows.begin[frees])

    shows, when = sightings(rows)
    seen = np.flatnonzero(shows & ~copies & (begun[message] < when))
    findings.at_stake(seen)
    early = seen[free[message[seen]] >= when[seen]]
    theirs = (frees[message[frees] == message[one]] for one in early)
    free_before = [
        _may_be_free_before(rows, one, some) for one, some in zip(early, theirs, strict=True)
    ]
    certain = ~(np.asarray(free_before, np.bool_) | tried_unseen(rows, message)[early])
    findings.broken(SeenUncommitted, half=first_half[message[early]], seen=early, certain=certain)

    asked = np.flatnonzero(rows.are(Kind.CHECK) & ~copies)
    findings.at_stake(asked)
    attempt = rows.number("attempt")[asked]
    most = rows.config("transaction_check_max", asked)
    too_often = (attempt != NONE) & (attempt > most)
    findings.broken(AskedTooOften, {"most": most[too_often]}, asked=asked[too_often])


def _may_be_free_before(rows: Rows, seen: int, frees: Ints) -> bool:
    """Did another clock time what frees the message so soon after that it may have come first?"""
    bound_us = rows.context_of(seen).info.clock_bound_us
    when = int(rows.started[seen] if rows.are(Kind.DELIVER)[seen] else rows.ended[seen])
    others = frees[rows.text("clock")[frees] != rows.text("clock")[seen]]
    return bool(bound_us) and bool(np.any(rows.started[others] <= when + bound_us))


def explain(found: SeenUncommitted | AskedTooOften) -> str:
    if isinstance(found, AskedTooOften):
        asked = found.asked
        return (
            f"{who(asked)} was asked about the half message {asked.message_id} at {at(asked)}, for time number "
            f"{asked.attempt}, where {found.most} times are the most"
        )
    half, seen = found.half, found.seen
    return (
        f"{saw(seen)} message {half.message_id} at {at(seen)}, though {who(half)} had sent it as a half "
        f"message at {at(half)} and nobody had committed it"
    )
