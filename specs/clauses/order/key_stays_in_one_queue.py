"""The sends of one producer and key, each acknowledged before the next began, lie in one queue in their order.

Compared are neighbours: a send, and the last one of the same producer, topic and key that was acknowledged before it
began. Both say in `view` by which selector and from which queues they chose; where that differs, or is not known, the
list of queues may have changed, and keys then move. A view that names no queues does not say which there were, and a
selector of the name `random` or `round-robin` promises nothing of a key. The order within the queue is not compared
across a crash of the broker, which may lose what it had not flushed; nor is that of a further try, whose place may be
the first one's: a log that takes each message once answers it again. Delayed messages lie elsewhere first and are left
out. So are sends whose answer names no place: the answer to a batch names that of its first message, so where
the others of it lie only readers show, and this clause asks none (SND-5 asks where a batch lies, ORD-9 compares with
what readers show).
"""

import re

import numpy as np

from specs.clauses.premises import BROKER_LIVES, SAME_QUEUES
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE
from specs.facts.segments import Timeline, dense, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-1"
TITLE = "a key stays in one queue"
STATEMENT = (
    "Sends of one producer and key, each acknowledged before the next began, under an unchanged queue list, lie in one "
    "queue in the order of their sending."
)
PARTY = Party.PAIR
KEY = Key.PRODUCER_KEY
PREMISE = (SAME_QUEUES, BROKER_LIVES)
SOURCES = ("docs/sources.md#selector", "docs/sources.md#send")
KINDS = frozenset({Kind.SEND})
NEEDS = frozenset({Kind.SEND})
COLUMNS = ("client_id", "sharding_key", "view", "queue_offset", "outcome", "delay_level", "attempt")


class Strayed(Finding):
    earlier: Row
    later: Row


BY_KEY = re.compile(r"\s*(?!(?:random|round-robin)\s)\S+\s+\S")
"""A selector that looks at the key, and a queue at least."""


def judge(rows: Rows, findings: Findings) -> None:
    view, queue_id, delay = rows.text("view"), rows.number("queue_id"), rows.number("delay_level")
    sent = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    by_key = [code for code, words in enumerate(rows.words("view")) if BY_KEY.match(words)]
    sent &= np.isin(view, by_key)
    sent &= (queue_id != NONE) & (rows.offset != NONE) & ((delay == NONE) | (delay == 0))
    where = positions(sent)
    if not len(where):
        return
    columns = (rows.run, rows.client, rows.text("topic"), rows.text("sharding_key"))
    key, _ = dense(*(column[where] for column in columns))
    before = Timeline(key, rows.end[where]).last_before(key, rows.begin[where])
    later = np.flatnonzero(before != NOWHERE)
    one, two = where[before[later]], where[later]
    same = view[one] == view[two]
    one, two = one[same], two[same]
    findings.at_stake(two)
    broker = rows.text("broker")
    strayed = (broker[one] != broker[two]) | (queue_id[one] != queue_id[two])
    behind = (rows.offset[two] <= rows.offset[one]) & (rows.number("attempt")[two] <= 1)
    for place in np.flatnonzero(strayed | behind).tolist():
        first, second = int(one[place]), int(two[place])
        if strayed[place] or not _died_since(rows, first, second):
            findings.shown(Strayed, {"earlier": first, "later": second})


def _died_since(rows: Rows, first: int, second: int) -> bool:
    """Did the broker of both die after the first send began and before the second one ended?"""
    code = int(rows.text("broker")[first])
    broker = rows.words("broker")[code] if code != NO_TEXT else ""
    epoch = int(rows.number("broker_epoch")[first])
    return rows.context_of(first).broker_died_since(
        broker, int(rows.begin[first]), epoch, int(rows.end[second])
    )


def explain(found: Strayed) -> str:
    earlier, later = found.earlier, found.later
    return (
        f"{who(later)} sent message {later.message_id} of key {later.sharding_key} at {at(later)}, and it lies at "
        f"offset {later.queue_offset} of {later.queue}, while message {earlier.message_id} of the same key, sent at "
        f"{at(earlier)} and acknowledged before, lies at offset {earlier.queue_offset} of {earlier.queue}"
    )
