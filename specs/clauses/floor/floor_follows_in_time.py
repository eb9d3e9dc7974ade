"""The floor that a store tells of a group does not stay below messages that were acknowledged long before.

A witness reads the floor (PROGRESS): the offset of the next message after all that is finished; nothing stored is the
queue's begin. It is late when the queue's first message from the floor on had been acknowledged, and the server had
said so, for longer than a timer of a healthy process may be late when the witness asked. Which message is the first is
certain where it lies at the floor itself; beyond a gap in the offsets only where the history holds every producer and
each of their sends has named its place. A server that died or stood still since is not held to it.
"""

from collections.abc import Iterator

import numpy as np

from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, NOT_MOVED
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, over_us, who
from specs.facts.columns import MS, NEVER, NONE
from specs.facts.intervals import Intervals
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
COLUMNS = ("queue_offset", "value")


class FloorIsLate(Finding):
    acknowledged: Row
    reading: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Only queues of which somebody has read a floor, and acknowledged a message, are gone through."""
    answered = rows.end < NEVER
    reads = rows.are(Kind.PROGRESS) & answered & rows.ended_as(Outcome.OK, Outcome.REFUSED)
    acks = rows.are(Kind.ACK) & answered & rows.ended_as(Outcome.OK) & (rows.offset != NONE)
    for queue in np.intersect1d(rows.queue[reads], rows.queue[acks]).tolist():
        mine = rows.queue == queue
        shown = mine & (reads | acks)
        _Queue(rows, findings).go(
            np.flatnonzero(shown).tolist(), np.flatnonzero(mine & rows.are(Kind.SEND)).tolist()
        )


class _Queue:
    """places: the offsets of its messages. open: sends that have not named theirs."""

    def __init__(self, rows: Rows, findings: Findings) -> None:
        self.rows, self.findings = rows, findings
        self.places, self.open = Intervals(), 0
        self.acks: dict[tuple[int, int], int] = {}
        self.first_us: dict[int, int] = {}

    def go(self, shown: list[int], sends: list[int]) -> None:
        for _, place, begins in sorted(self._events(shown, sends)):
            rows = self.rows
            if rows.kind[place] == _SEND:
                self._send(place, begins=bool(begins))
            elif rows.kind[place] == _ACK:
                group, offset = int(rows.group[place]), int(rows.offset[place])
                self.places.add(offset)
                self.acks.setdefault((group, offset), place)
                self.first_us.setdefault(group, int(rows.ended[place]))
            else:
                self._read(place)

    def _events(self, shown: list[int], sends: list[int]) -> Iterator[tuple[int, int, int]]:
        end, begin = self.rows.end, self.rows.begin
        for place in shown:
            yield int(end[place]), place, 0
        for place in sends:
            yield int(begin[place]), place, 1
            if end[place] < NEVER:
                yield int(end[place]), place, 0

    def _send(self, place: int, *, begins: bool) -> None:
        outcome, offset = self.rows.outcome[place], int(self.rows.offset[place])
        if begins:
            self.open += 1
        elif outcome == _OK and offset != NONE:
            self.places.add(offset)
            self.open -= 1
        elif outcome == _REFUSED:
            self.open -= 1

    def _read(self, place: int) -> None:
        rows, group = self.rows, int(self.rows.group[place])
        context, now = rows.context_of(place), int(rows.end[place])
        slack_us = context.info.config.schedule_slack_ms * MS + context.info.clock_bound_us
        due_us = int(rows.started[place]) - slack_us
        if self.first_us.get(group, due_us) >= due_us:
            return
        self.findings.at_stake(np.asarray([place]))
        told = int(rows.value[place]) if rows.outcome[place] == _OK else 0
        floor = max(0, told)
        first = self.places.first_present(floor)
        ack = None if first is None else self.acks.get((group, first))
        if ack is None or (first != floor and self.open) or rows.ended[ack] >= due_us:
            return
        broker, began = rows.name_of("broker", ack), int(rows.begin[ack])
        epoch = int(rows.number("broker_epoch")[ack])
        died = context.broker_died_since(broker, began, epoch, now)
        if not died and not context.broker_paused_since(broker, int(rows.started[ack]), now):
            self.findings.shown(FloorIsLate, {"acknowledged": ack, "reading": place})


_KINDS, _OUTCOMES = list(Kind), list(Outcome)
_SEND, _ACK = _KINDS.index(Kind.SEND), _KINDS.index(Kind.ACK)
_OK, _REFUSED = _OUTCOMES.index(Outcome.OK), _OUTCOMES.index(Outcome.REFUSED)


def explain(found: FloorIsLate) -> str:
    ack, reading = found.acknowledged, found.reading
    told = "nothing" if reading.outcome is Outcome.REFUSED else f"{reading.value}"
    return (
        f"at {at(reading)} the store had {told} for {reading.lane}, {ms(reading.started_us - over_us(ack))} after "
        f"{who(ack)} was told that offset {ack.queue_offset}, the first from there on, is acknowledged"
    )
