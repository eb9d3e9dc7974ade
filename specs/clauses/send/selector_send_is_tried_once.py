"""A message with a sharding key is sent once: the producer does not try again by itself.

A second try after one that was not answered may store a second copy behind later messages of the key, and a try at
another queue leaves the key's queue; so a send through a selector ends with its first attempt, however that ends.
`attempt` counts the tries that the producer makes of one message. An application that sends again what failed makes
a new message of it, and keeping order is then its own affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-4"
TITLE = "a selector send is tried once"
STATEMENT = "A producer tries the send of a message with a sharding key once."
PARTY = Party.PRODUCER
KEY = Key.MESSAGE
PREMISE = ()
SOURCES = ("docs/sources.md#send",)
STAKES = (Stake(Trait.FAILED_SEND),)
KINDS = frozenset({Kind.SEND})
NEEDS = frozenset({Kind.SEND})


def wants(row: Row) -> bool:
    """Sends without a key may be tried again."""
    return row.sharding_key is not None


@dataclass(frozen=True, slots=True)
class TriedAgain(Finding):
    first: Row
    again: Row


class MessageJudge(Judge):
    """Remembers the first try."""

    __slots__ = ("first",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.first: Row | None = None

    def begins(self, row: Row) -> Iterable[Finding]:
        first = self.first
        if first is None:
            self.first = row
        elif first.client_id == row.client_id and (row.attempt or 1) > (first.attempt or 1):
            self.opportunities += 1
            return (TriedAgain(first, row),)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row is self.first and row.outcome is not Outcome.OK:
            self.opportunities += 1
        return NOTHING


judge = MessageJudge


def explain(found: TriedAgain) -> str:
    first, again = found.first, found.again
    return (
        f"{who(again)} sent message {again.message_id} of key {again.sharding_key} again at {at(again)} (attempt "
        f"{again.attempt}), after its send at {at(first)} had ended {first.outcome}"
    )
