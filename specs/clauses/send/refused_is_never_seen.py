"""A message whose every send was refused, with a code that says so, is neither read nor delivered.

A refusal is an answer with a code that says that nothing was stored. The codes 10 to 12 say that the message *is*
stored, and code 1, a broker's internal error, says nothing for certain; an attempt that ended with one of these,
without an answer, or without a code may have stored the message, and so excuses it: who writes down that a send was
refused and not by which answer may mean any failure, so of systems without such codes nothing is said. Every attempt up
to the last must be in the history, by its number: two with one number are one of them. More than nine are not shown,
and of them nothing is said. A copy among the retries or dead letters shows its original. Where frames may come twice,
one of the two may be stored and the other one refused. It is at stake where somebody looked after a refusal: its queue
was read to the end, or a listener was called for the topic.
"""

import numpy as np

from specs.clauses.premises import NO_FRAME_TWICE
from specs.clauses.terms import Finding, Findings, Row, Rows, at, saw, who
from specs.facts.columns import NONE
from specs.facts.segments import dense, positions
from specs.facts.stored import refused as certainly_refused
from specs.facts.stored import tried_unseen
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-3"
TITLE = "refused is never seen"
STATEMENT = (
    "A message whose every send was refused with a code that says so is never read or delivered."
)
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (NO_FRAME_TWICE,)
SOURCES = ("docs/sources.md#send",)
STAKES = (Stake(Trait.FULL_DISK),)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
NEEDS = frozenset({Kind.SEND})
COLUMNS = ("message_id", "origin_id", "outcome", "code", "attempt")


class SeenThoughRefused(Finding):
    refused: tuple[Row, ...]
    seen: Row


ATTEMPTS_MAX = 9


def judge(rows: Rows, findings: Findings) -> None:
    """Messages of which every send was refused for certain; those that somebody saw all the same."""
    message, count = dense(rows.run, rows.source)
    sent = rows.of(Kind.SEND)
    refused = certainly_refused(rows)
    refused[refused] &= ~rows.frames_twice(positions(refused))
    sends = np.bincount(message[sent], minlength=count)
    refusals = np.bincount(message[refused], minlength=count)
    for_good = (refusals > 0) & (refusals == sends) & (refusals <= ATTEMPTS_MAX)
    for_good[message[tried_unseen(rows, message)]] = False
    seen = rows.are(Kind.DELIVER) | (rows.are(Kind.READ) & rows.ended_as(Outcome.OK))
    seen &= for_good[message]
    where = positions(refused & for_good[message])
    shown = positions(seen)
    looked = where[np.asarray([_looked_for(rows, place) for place in where.tolist()], np.bool_)]
    at_stake = np.union1d(message[looked], message[shown])
    messages, first = np.unique(message[where], return_index=True)
    findings.at_stake(where[first[np.isin(messages, at_stake)]])
    messages, first = np.unique(message[shown], return_index=True)
    for each, place in zip(messages.tolist(), shown[first].tolist(), strict=True):
        refusals_of = where[message[where] == each].tolist()
        findings.shown(SeenThoughRefused, {"refused": refusals_of, "seen": place})


def _looked_for(rows: Rows, place: int) -> bool:
    """Did anybody read its queue, or was a listener called for its topic, after the refusal?"""
    topic, broker = rows.name_of("topic", place) or None, rows.name_of("broker", place) or None
    queue_id = int(rows.number("queue_id")[place])
    looks = rows.context_of(place).looks
    queue = (topic, broker, None if queue_id == NONE else queue_id)
    return max(looks.get((topic,), 0), looks.get(queue, 0)) > int(rows.end[place])


def explain(found: SeenThoughRefused) -> str:
    last, seen = found.refused[-1], found.seen
    times = f"all {len(found.refused)} times" if len(found.refused) > 1 else "once"
    return (
        f"{who(last)} sent message {last.message_id} and was refused {times} (code {last.code} at {at(last)}), but "
        f"{saw(seen)} it at offset {seen.queue_offset} of {seen.queue} at {at(seen)}"
    )
