"""A half message is seen only after its commit, and is asked about at most as often as the configuration says.

Seen: delivered, or read from the topic that it was sent to, from the begin of the delivery or until the end of the
read. A commit that was not refused counts from its begin, whether or not it was answered, and whoever sent it: any
producer of the group may answer a broker's question. A message that was also sent in the ordinary way, at any time
before, may be seen. How often the broker asked is what the question itself says: a frame that comes twice is not a
second question. A rollback is not needed as evidence: what was rolled back was never committed. Where both were said,
the clause is silent, for a half message that was sent twice has two transactions. With the clocks of several hosts a
commit that another clock times less than the bound later may have come first. That a committed message comes is the
business of SND-13.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import CLOSED_WORLD, NOTHING_TAKEN_BACK
from specs.clauses.rows import is_copy_topic, over_us
from specs.clauses.stored import COMMIT, is_half, is_refused
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-6"
TITLE = "a half message waits for its commit"
STATEMENT = (
    "A half message is not seen unless it was committed, and its producer is asked about it at most as often as "
    "configured."
)
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (CLOSED_WORLD, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#transactions",)
STAKES = (Stake(Trait.HALF),)
KINDS = frozenset({Kind.SEND, Kind.END_TRANSACTION, Kind.CHECK, Kind.DELIVER, Kind.READ})
SETTINGS = ("transaction_check_max",)
NEEDS = frozenset({Kind.SEND})


def wants(row: Row) -> bool:
    """Copies are made of messages that were seen."""
    return not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class SeenUncommitted(Finding):
    half: Row
    seen: Row


@dataclass(frozen=True, slots=True)
class AskedTooOften(Finding):
    asked: Row
    most: int


def frees(row: Row) -> bool:
    """May its message be seen from now on: was it committed, or sent in the ordinary way, and not surely in vain?"""
    if row.kind is Kind.END_TRANSACTION:
        return row.value == COMMIT and row.outcome is not Outcome.REFUSED
    return row.kind is Kind.SEND and not is_half(row) and not is_refused(row)


class MessageJudge(Judge):
    """Remembers, for each topic, the first half send and whether the message may be seen."""

    __slots__ = ("bound_us", "early", "free", "half")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.bound_us = context.info.clock_bound_us
        self.half: dict[str | None, Row] = {}
        self.free: set[str | None] = set()
        self.early: list[
            tuple[SeenUncommitted, int]
        ] = []  # with several clocks: what was seen too soon, and when

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.CHECK:
            return self._asked(row)
        if row.kind is Kind.DELIVER:
            return self._seen(row, row.started_us)
        if frees(row):
            self.free.add(row.topic)
            self.early = [(self._doubted(found, us, row), us) for found, us in self.early]
        elif row.kind is Kind.SEND and is_half(row):
            self.half.setdefault(row.topic, row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.READ or row.outcome is not Outcome.OK:
            return NOTHING
        return self._seen(row, over_us(row))

    def finish(self) -> Iterable[Finding]:
        return [found for found, _us in self.early]

    def _doubted(self, found: SeenUncommitted, seen_us: int, row: Row) -> SeenUncommitted:
        """It, no longer certain if what frees the message may have come first."""
        other = found.seen.clock != row.clock and found.seen.topic == row.topic
        return (
            replace(found, certain=False)
            if other and row.started_us <= seen_us + self.bound_us
            else found
        )

    def _asked(self, row: Row) -> Iterable[Finding]:
        self.opportunities += 1
        most = self.config.transaction_check_max
        return (
            (AskedTooOften(row, most),)
            if row.attempt is not None and row.attempt > most
            else NOTHING
        )

    def _seen(self, row: Row, seen_us: int) -> Iterable[Finding]:
        half = self.half.get(row.topic)
        if half is None:
            return NOTHING
        self.opportunities += 1
        if row.topic in self.free:
            return NOTHING
        if not self.bound_us:
            return (SeenUncommitted(half, row),)
        self.early.append((SeenUncommitted(half, row), seen_us))
        return NOTHING


judge = MessageJudge


def explain(found: SeenUncommitted | AskedTooOften) -> str:
    if isinstance(found, AskedTooOften):
        asked = found.asked
        return (
            f"{who(asked)} was asked about the half message {asked.message_id} at {at(asked)}, for time number "
            f"{asked.attempt}, where {found.most} times are the most"
        )
    half, seen = found.half, found.seen
    what = "read" if seen.kind is Kind.READ else "was given"
    return (
        f"{who(seen)} {what} message {half.message_id} at {at(seen)}, though {who(half)} had sent it as a half "
        f"message at {at(half)} and nobody had committed it"
    )
