"""A delayed message is neither delivered nor read before the time of its level has passed.

A level's time begins when the broker stores the message, and that is not before its send begins: a delivery that
begins, or a read that ends, earlier than the send's begin plus the level's time came too soon. Of several sends of
one message the one that could be seen first counts, whatever their outcomes; a send without a level can be seen at
once. A level beyond the table is the last one. Brokers count in whole milliseconds, so one millisecond is allowed.
A broker measures the wait by its wall clock, across its own death too: after a recorded step nothing is claimed. The
topics of retries and dead letters are left out: there the level belongs to the copy. Says nothing about how late a
message may come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from specs.clauses.base import (
    MS,
    NO_WALL_CLOCK_STEP,
    NOTHING,
    Context,
    Finding,
    Judge,
    at,
    is_copy_topic,
    ms,
    who,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-7"
TITLE = "a delayed message waits"
STATEMENT = "A message that was sent with a delay level is not seen before the level's time has passed."
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (NO_WALL_CLOCK_STEP,)
SOURCES = ("docs/sources.md#delay",)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
NEEDS = frozenset({Kind.SEND})

_DURATION = re.compile(r"(\d+)([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def wants(row: Row) -> bool:
    """Copies wait for levels of their own."""
    return not is_copy_topic(row.topic)


@lru_cache(maxsize=64)
def waits_ms(delay_levels: str) -> tuple[int, ...]:
    """The time of each level of the configured table, level 1 first; a word that is no duration waits for nothing."""
    found = (_DURATION.fullmatch(word) for word in delay_levels.split())
    return tuple(int(each[1]) * _UNIT_MS[each[2]] if each else 0 for each in found)


@dataclass(frozen=True, slots=True)
class SeenTooSoon(Finding):
    """sent: of the sends before, the one whose message could be seen first."""

    sent: Row
    seen: Row
    wait_us: int


class MessageJudge(Judge):
    """Remembers, for each topic, the send of the message that can be seen first."""

    __slots__ = ("first", "waits_us")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.first: dict[str | None, tuple[Row, int]] = {}
        self.waits_us = tuple(wait * MS for wait in waits_ms(self.config.delay_levels))

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND:
            wait_us = self.wait_us(row.delay_level)
            known = self.first.get(row.topic)
            if known is None or row.started_us + wait_us < known[0].started_us + known[1]:
                self.first[row.topic] = (row, wait_us)
        elif row.kind is Kind.DELIVER:
            return self._seen(row, row.started_us)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.READ or row.outcome is not Outcome.OK:
            return NOTHING
        return self._seen(row, row.started_us if row.ended_us is None else row.ended_us)

    def wait_us(self, level: int | None) -> int:
        if not level or level < 0 or not self.waits_us:
            return 0
        return self.waits_us[min(level, len(self.waits_us)) - 1]

    def _seen(self, row: Row, seen_us: int) -> Iterable[Finding]:
        sent, wait_us = self.first.get(row.topic, (None, 0))
        if sent is None or not wait_us or self.context.clock_stepped is not None:
            return NOTHING
        self.opportunities += 1
        if seen_us > sent.started_us + wait_us - MS:
            return NOTHING
        return (SeenTooSoon(sent, row, wait_us),)


judge = MessageJudge


def explain(found: SeenTooSoon) -> str:
    sent, seen = found.sent, found.seen
    what = "read" if seen.kind is Kind.READ else "was given"
    return (
        f"{who(seen)} {what} message {sent.message_id} at {at(seen)}, though {who(sent)} had sent it at {at(sent)} "
        f"with delay level {sent.delay_level}, which is {ms(found.wait_us)}"
    )
