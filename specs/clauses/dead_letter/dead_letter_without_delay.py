"""A dead letter is stored at once: it does not wait for a delay level.

The time at which the broker stored it (which it writes into the message) is at most the bound later than the answer to
the client that gave the message up; both are wall clocks, and what lies between their hosts' is added. Where a dead
letter of the message was refused or unanswered, or tried before the history begins, or where a link made two frames of
one, a copy may arrive at any time, and nothing is claimed. Nor is anything of a copy that is read while another dead
letter of the message is under way: it may be that one's. In an open world what arrives late may be somebody else's, and
is at most possibly late.
RocketMQ promises this from 5.0 on: before, the delay level that the client sets is obeyed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import DEAD_LETTER_SENT, NO_FRAME_TWICE, STAMPS_COMPARE
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.vocabulary import DLQ_PREFIX, Key, Kind, Outcome, Party

ID = "DLQ-7"
TITLE = "a dead letter does not wait"
STATEMENT = "A dead letter is stored at once, without waiting for a delay level."
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (STAMPS_COMPARE, DEAD_LETTER_SENT, NO_FRAME_TWICE)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ})
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.READ})
CONCLUDES_FROM_ABSENCE = True


def wants(row: Row) -> bool:
    """Of what is read, only dead letters."""
    return row.kind is not Kind.READ or (row.topic or "").startswith(DLQ_PREFIX)


@dataclass(frozen=True, slots=True)
class StoredLate(Finding):
    given_up: Row
    stored: Row


class MessageJudge(Judge):
    """Remembers, for each group, the last acknowledged dead letter of a message, or that one was not.

    under_way: how many have begun and are not answered yet.
    """

    __slots__ = ("failed", "sent", "under_way")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: dict[str, Row] = {}
        self.failed: set[str] = set()
        self.under_way: Counter[str] = Counter()

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DEAD_LETTER:
            self.under_way[row.group or ""] += 1
            if row.outcome is not Outcome.OK or row.attempt not in (None, 1):
                self.failed.add(row.group or "")
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.outcome is not Outcome.OK:
            return NOTHING
        if row.kind is Kind.DEAD_LETTER:
            self.sent[row.group or ""] = row
            self.under_way[row.group or ""] -= 1
            return NOTHING
        name = (row.topic or "")[len(DLQ_PREFIX) :]
        sent = self.sent.get(name)
        if sent is None or name in self.failed or row.wall_us is None or sent.ended_wall_us is None:
            return NOTHING
        if self.under_way[name] or self.context.frames_twice is not None:
            return NOTHING
        self.opportunities += 1
        bound_us = self.config.dead_letter_bound_ms * MS + self.context.info.clock_bound_us
        if row.wall_us <= sent.ended_wall_us + bound_us:
            return NOTHING
        return (StoredLate(sent, row),)


judge = MessageJudge


def explain(found: StoredLate) -> str:
    sent, stored = found.given_up, found.stored
    late = ms((stored.wall_us or 0) - (sent.ended_wall_us or 0))
    return (
        f"the dead letter of message {sent.source_id}, which {who(sent)} gave up at {at(sent)} and which was "
        f"acknowledged, was stored in {stored.topic} only {late} later"
    )
