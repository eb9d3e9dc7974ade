"""The floor that a store tells of a group does not stay below messages that were acknowledged long before.

A witness reads the floor (PROGRESS): the offset of the next message after all that is finished; nothing stored is the
queue's begin. It is late when the queue's first message from the floor on had been acknowledged, and the server had
said so, for longer than a timer of a healthy process may be late when the witness asked. Which message is the first is
certain where it lies at the floor itself; beyond a gap in the offsets only where the history holds every producer and
each of their sends has named its place. A server that died or stood still since is not held to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, NOT_MOVED
from specs.clauses.rows import over_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Level, Outcome, Party

ID = "FLR-2"
TITLE = "the floor follows in time"
STATEMENT = (
    "Once the first unfinished message of a group was acknowledged, the floor that the store tells passes it, no later "
    "than a timer may be late."
)
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (BROKER_LIVES, BROKER_NOT_PAUSED, NOT_MOVED)
SOURCES = ("docs/sources.md#acknowledgement-floor",)
KINDS = frozenset({Kind.SEND, Kind.ACK, Kind.PROGRESS})
LEVELS = frozenset(Level)
NEEDS = frozenset({Kind.ACK, Kind.PROGRESS})
CONCLUDES_FROM_ABSENCE = True


@dataclass(frozen=True, slots=True)
class FloorIsLate(Finding):
    acknowledged: Row
    reading: Row


class QueueJudge(Judge):
    """places: the offsets of the queue's messages. unplaced: sends whose place is not known (yet).

    acknowledged: by group and offset, the first answer that said so. since: by group, when the first of them ended.
    """

    __slots__ = ("acknowledged", "places", "since", "unplaced")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.places = Intervals()
        self.unplaced = 0
        self.acknowledged: dict[tuple[str | None, int], Row] = {}
        self.since: dict[str | None, int] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND:
            self.unplaced += 1
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND:
            self._sent(row)
        elif row.kind is Kind.PROGRESS:
            return self._judged(row)
        elif row.outcome is Outcome.OK and row.queue_offset is not None:
            self.places.add(row.queue_offset)
            self.acknowledged.setdefault((row.group, row.queue_offset), row)
            self.since.setdefault(row.group, over_us(row))
        return NOTHING

    def _sent(self, row: Row) -> None:
        if row.outcome is Outcome.OK and row.queue_offset is not None:
            self.places.add(row.queue_offset)
            self.unplaced -= 1
        elif row.outcome is Outcome.REFUSED:
            self.unplaced -= 1

    def _judged(self, reading: Row) -> Iterable[Finding]:
        """What the store said, against what was acknowledged by then."""
        if reading.outcome not in (Outcome.OK, Outcome.REFUSED):
            return NOTHING
        bound_us = self.config.schedule_slack_ms * MS + self.context.info.clock_bound_us
        due_us = reading.started_us - bound_us
        if self.since.get(reading.group, due_us) >= due_us:
            return NOTHING
        self.opportunities += 1
        floor = max(0, reading.value or 0) if reading.outcome is Outcome.OK else 0
        first = self.places.first_present(floor)
        if first is None or (first != floor and self.unplaced):
            return NOTHING
        ack = self.acknowledged.get((reading.group, first))
        if ack is None or over_us(ack) >= due_us or self._is_excused(ack):
            return NOTHING
        return (FloorIsLate(ack, reading),)

    def _is_excused(self, ack: Row) -> bool:
        context = self.context
        return context.broker_died_since(ack.broker, ack) or context.broker_paused_since(
            ack.broker, ack.started_us
        )


judge = QueueJudge


def explain(found: FloorIsLate) -> str:
    ack, reading = found.acknowledged, found.reading
    told = "nothing" if reading.outcome is Outcome.REFUSED else f"{reading.value}"
    return (
        f"at {at(reading)} the store had {told} for {reading.lane}, {ms(reading.started_us - over_us(ack))} after "
        f"{who(ack)} was told that offset {ack.queue_offset}, the first from there on, is acknowledged"
    )
