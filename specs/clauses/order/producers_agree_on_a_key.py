"""Producers that choose by the same selector from the same queues choose the same queue for a key.

A send says in `view` by which selector and from which queues it chose; every send of another producer with the same
topic, key and view is compared with the first, unless the selector is named `random` or `round-robin`, which look at no
key, or the view names no queue. It counts whether or not it was answered: what is promised is the choice. That one
producer keeps to its choice is ORD-1. A history shows only the hashes that occur in it: a table holds the selector by
Java's hash to the ones that matter, among them the smallest, which has no positive twin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.order.key_stays_in_one_queue import chose_by_key
from specs.clauses.premises import SAME_QUEUES
from specs.clauses.words import at, who
from specs.history.row import Row
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


def wants(row: Row) -> bool:
    """Sends that say from which queues they chose by the key, and which."""
    return chose_by_key(row) and row.queue_id is not None and row.client_id is not None


@dataclass(frozen=True, slots=True)
class Disagreed(Finding):
    first: Row
    second: Row


class KeyJudge(Judge):
    """Remembers, for each selector and list of queues, who first chose a queue for the key."""

    __slots__ = ("first",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.first: dict[str | None, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        first = self.first.setdefault(row.view, row)
        if first.client_id == row.client_id:
            return NOTHING
        self.opportunities += 1
        if (first.broker, first.queue_id) == (row.broker, row.queue_id):
            return NOTHING
        return (Disagreed(first, row),)


judge = KeyJudge


def explain(found: Disagreed) -> str:
    first, second = found.first, found.second
    return (
        f"{who(second)} chose {second.queue} for key {second.sharding_key} at {at(second)}, {who(first)} had chosen "
        f"{first.queue} for it at {at(first)}, both by the same selector from the same queues ({second.view})"
    )
