"""A delayed message is neither delivered nor read before the time of its level has passed.

A level's time begins when the broker stores the message, and that is not before its send begins: a delivery that
begins, or a read that ends, earlier than the send's begin plus the level's time came too soon. Of several sends of
one message the one that could be seen first counts, whatever their outcomes; a send without a level can be seen at
once, and a half message as soon as its transaction ends. A level beyond the table is the last one. Brokers count in
whole milliseconds, so one millisecond is allowed. Where two clocks time the two ends, it is certain only beyond the
bound between them. A broker measures the wait by its wall clock, across its own death too: after a recorded step
nothing is claimed. The topics of retries and dead letters are left out: there the level belongs to the copy. How late a
message may come is the business of SND-11.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_WALL_CLOCK_STEP
from specs.clauses.rows import is_copy_topic, over_us
from specs.clauses.stored import wait_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-7"
TITLE = "a delayed message waits"
STATEMENT = (
    "A message that was sent with a delay level is not seen before the level's time has passed."
)
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (NO_WALL_CLOCK_STEP,)
SOURCES = ("docs/sources.md#delay",)
STAKES = (Stake(Trait.DELAYED),)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
SETTINGS = ("delay_levels",)
NEEDS = frozenset({Kind.SEND})
LOOKS_BACK = True


def wants(row: Row) -> bool:
    """Copies wait for levels of their own."""
    return not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class SeenTooSoon(Finding):
    """sent: of the sends before, the one whose message could be seen first."""

    sent: Row
    seen: Row
    wait_us: int


class MessageJudge(Judge):
    """Remembers, for each topic, the send of the message that can be seen first."""

    __slots__ = ("first",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.first: dict[str | None, tuple[Row, int]] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND:
            waits_us = wait_us(row, self.config)
            known = self.first.get(row.topic)
            if known is None or row.started_us + waits_us < known[0].started_us + known[1]:
                self.first[row.topic] = (row, waits_us)
        elif row.kind is Kind.DELIVER:
            return self._seen(row, row.started_us)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.READ or row.outcome is not Outcome.OK:
            return NOTHING
        return self._seen(row, over_us(row))

    def _seen(self, row: Row, seen_us: int) -> Iterable[Finding]:
        sent, waits_us = self.first.get(row.topic, (None, 0))
        if sent is None or not waits_us or self.context.clock_stepped is not None:
            return NOTHING
        self.opportunities += 1
        missing_us = sent.started_us + waits_us - MS - seen_us
        if missing_us < 0:
            return NOTHING
        return (SeenTooSoon(sent, row, waits_us, certain=missing_us >= self._unsure_us(sent, row)),)

    def _unsure_us(self, sent: Row, seen: Row) -> int:
        """How much the clocks of the two may differ."""
        return 0 if sent.clock == seen.clock else self.context.info.clock_bound_us


judge = MessageJudge


def explain(found: SeenTooSoon) -> str:
    sent, seen = found.sent, found.seen
    what = "read" if seen.kind is Kind.READ else "was given"
    return (
        f"{who(seen)} {what} message {sent.message_id} at {at(seen)}, though {who(sent)} had sent it at {at(sent)} "
        f"with delay level {sent.delay_level}, which is {ms(found.wait_us)}"
    )
