"""A message whose every send was refused, with a code that says so, is neither read nor delivered.

A refusal is an answer with a code that says that nothing was stored. The codes 10 to 12 say that the message *is*
stored, and code 1, a broker's internal error, says nothing for certain; an attempt that ended with one of these,
without an answer, or without a code may have stored the message, and so excuses it: who writes down that a send was
refused and not by which answer may mean any failure, so of systems without such codes nothing is said. Every attempt
up to the last must be in the history. A copy among the retries or dead letters shows its original. Where frames may
come twice, one of the two may be stored and the other one refused. It is at stake where somebody looked after a
refusal: its queue was read to the end, or a listener was called for the topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_FRAME_TWICE
from specs.clauses.stored import is_refused
from specs.clauses.words import at, who
from specs.history.row import Row
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

ATTEMPTS_MAX = 9
"""Of a message with more attempts nothing is said: a witness is short."""


@dataclass(frozen=True, slots=True)
class SeenThoughRefused(Finding):
    refused: tuple[Row, ...]
    seen: Row


class MessageJudge(Judge):
    """Remembers the refusals of one message, and the first time that it was seen."""

    __slots__ = ("attempts", "may_be_stored", "refused", "seen")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.refused: list[Row] = []
        self.attempts = 0  # the highest number of an attempt
        self.may_be_stored = False
        self.seen: Row | None = None

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.SEND:
            if self.seen is None and (row.kind is Kind.DELIVER or row.outcome is Outcome.OK):
                self.seen = row
        elif is_refused(row) and not self.may_be_stored and len(self.refused) < ATTEMPTS_MAX:
            self.refused.append(row)
            self.attempts = max(self.attempts, row.attempt or 1)
        else:
            self.may_be_stored = True
            self.refused.clear()
        return NOTHING

    def finish(self) -> Iterable[Finding]:
        if self.may_be_stored or not self.refused or self.attempts > len(self.refused):
            return NOTHING
        if self.context.frames_twice is not None:
            return NOTHING
        self.opportunities += self.seen is not None or any(
            self._looked_for(row) for row in self.refused
        )
        return (
            NOTHING if self.seen is None else (SeenThoughRefused(tuple(self.refused), self.seen),)
        )

    def _looked_for(self, refused: Row) -> bool:
        """Did anybody look, after the refusal, where the message would lie?"""
        drained = self.context.drained.get((refused.run, refused.queue), 0)
        delivered = self.context.delivered.get((refused.run, refused.topic), 0)
        return max(drained, delivered) > (refused.seq_end or 0)


judge = MessageJudge


def explain(found: SeenThoughRefused) -> str:
    last, seen = found.refused[-1], found.seen
    times = f"all {len(found.refused)} times" if len(found.refused) > 1 else "once"
    what = "read" if seen.kind is Kind.READ else "was given"
    return (
        f"{who(last)} sent message {last.message_id} and was refused {times} (code {last.code} at {at(last)}), but "
        f"{who(seen)} {what} it at offset {seen.queue_offset} of {seen.queue} at {at(seen)}"
    )
