"""A message with a sharding key is sent once: the producer does not try again by itself.

A second try after one that was not answered may store a second copy behind later messages of the key, and a try at
another queue leaves the key's queue; so a send through a selector ends with its first attempt, however that ends.
`attempt` counts the tries that the producer makes of one message. An application that sends again what failed makes
a new message of it, and keeping order is then its own affair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, dense, first_of_each, positions
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
COLUMNS = ("message_id", "origin_id", "client_id", "sharding_key", "attempt", "outcome")


@dataclass(frozen=True, slots=True)
class TriedAgain(Finding):
    first: Row
    again: Row


def judge(rows: Rows, findings: Findings) -> None:
    where = positions(rows.are(Kind.SEND) & (rows.text("sharding_key") != NO_TEXT))
    if not len(where):
        return
    message, count = dense(rows.run[where], rows.source[where])
    first = where[first_of_each(message, count)]
    failed = ~rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    findings.at_stake(first[failed[first]])
    attempt = rows.number("attempt")
    attempt = np.where(attempt == NONE, 1, attempt)
    before = first[message]
    again = (attempt[where] > attempt[before]) & (rows.client[where] == rows.client[before])
    findings.at_stake(where[again])
    findings.broken(TriedAgain, first=before[again], again=where[again])


def explain(found: TriedAgain) -> str:
    first, again = found.first, found.again
    return (
        f"{who(again)} sent message {again.message_id} of key {again.sharding_key} again at {at(again)} (attempt "
        f"{again.attempt}), after its send at {at(first)} had ended {first.outcome}"
    )
