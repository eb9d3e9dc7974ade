"""Producers that choose by the same selector from the same queues choose the same queue for a key.

A send says in `view` by which selector and from which queues it chose; every send of another producer with the same
topic, key and view is compared with the first, unless the selector is named `random` or `round-robin`, which look at no
key, or the view names no queue. It counts whether or not it was answered: what is promised is the choice. That one
producer keeps to its choice is ORD-1. A history shows only the hashes that occur in it: a table holds the selector by
Java's hash to the ones that matter, among them the smallest, which has no positive twin.
"""

import numpy as np

from specs.clauses.order.key_stays_in_one_queue import BY_KEY
from specs.clauses.premises import SAME_QUEUES
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NO_TEXT, NONE
from specs.facts.segments import dense, first_of_each, positions
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Party

ID = "ORD-6"
TITLE = "producers agree on a key"
STATEMENT = (
    "Producers that declare the same selector map a key to the same queue while the list of queues is unchanged, for "
    "every hash value."
)
PARTY = Party.PRODUCER
KEY = Key.TOPIC_KEY
PREMISE = (SAME_QUEUES,)
SOURCES = ("docs/sources.md#selector",)
STAKES = (Stake(Trait.SHARED_KEY),)
KINDS = frozenset({Kind.SEND})
NEEDS = frozenset({Kind.SEND})
VECTORS = "key_to_queue.json"
COLUMNS = ("client_id", "sharding_key", "view")


class Disagreed(Finding):
    first: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    view, queue_id = rows.text("view"), rows.number("queue_id")
    by_key = [code for code, words in enumerate(rows.words("view")) if BY_KEY.match(words)]
    known = np.isin(view, by_key) & (queue_id != NONE) & (rows.client != NO_TEXT)
    where = positions(rows.are(Kind.SEND) & known)
    if not len(where):
        return
    columns = (rows.run, rows.text("topic"), rows.text("sharding_key"), view)
    choice, count = dense(*(column[where] for column in columns))
    first = where[first_of_each(choice, count)][choice]
    others = rows.client[first] != rows.client[where]
    findings.at_stake(where[others])
    broker = rows.text("broker")
    wrong = others & ((broker[first] != broker[where]) | (queue_id[first] != queue_id[where]))
    findings.broken(Disagreed, first=first[wrong], second=where[wrong])


def explain(found: Disagreed) -> str:
    first, second = found.first, found.second
    return (
        f"{who(second)} chose {second.queue} for key {second.sharding_key} at {at(second)}, {who(first)} had chosen "
        f"{first.queue} for it at {at(first)}, both by the same selector from the same queues ({second.view})"
    )
