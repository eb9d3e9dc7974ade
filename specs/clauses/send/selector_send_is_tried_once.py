"""A message with a sharding key is sent once: the producer does not try again by itself.

A second try after one that was not answered may store a second copy behind later messages of the key, and a try at
another queue leaves the key's queue; so a send through a selector ends with its first attempt, however that ends.
`attempt` counts the tries that the producer makes of one message. An application that sends again what failed makes
a new message of it, and keeping order is then its own affair. A second try of which no first one is told is possible
only: the number is the message's, and another producer may have made the first.
"""

import numpy as np

from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE
from specs.facts.segments import Segments, dense
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


class TriedAgain(Finding):
    """first: the try before it, None where none is told."""

    first: Row | None
    again: Row


def judge(rows: Rows, findings: Findings) -> None:
    sends, tried = rows.of(Kind.SEND), rows.number("attempt")
    tried = np.where(tried == NONE, 1, tried)
    anybodys, _ = dense(rows.run[sends], rows.source[sends])
    is_first = Segments(anybodys).highest_before(-tried[sends]) == NOWHERE
    keyed = rows.text("sharding_key")[sends] != NO_TEXT
    where, is_first = sends[keyed], is_first[keyed]
    if not len(where):
        return
    attempt = tried[where]
    mine, _ = dense(rows.run[where], rows.source[where], rows.client[where])
    before = Segments(mine).highest_before(-attempt)  # the lowest number
    failed = ~rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    findings.at_stake(where[(before == NOWHERE) & failed[where]])
    told = (before != NOWHERE) & (attempt > attempt[before])
    alone = is_first & (attempt > 1)
    again = told | alone
    findings.at_stake(where[told | (alone & ~failed[where])])
    first = np.where(told, where[before], NOWHERE)[again]
    findings.broken(TriedAgain, first=first, again=where[again], certain=told[again])


def explain(found: TriedAgain) -> str:
    first, again = found.first, found.again
    end = (
        f"after its send at {at(first)} had ended {first.outcome}"
        if first
        else "and no first one is told"
    )
    return (
        f"{who(again)} sent message {again.message_id} of key {again.sharding_key} again at {at(again)} (attempt "
        f"{again.attempt}), {end}"
    )
