"""FLR-2 over columns: the readings of a queue's floors one by one, against the answers that came before each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import LEASED, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.intervals import Intervals
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NONE
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
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
            self.findings.violation([ack, place])


_KINDS, _OUTCOMES = list(Kind), list(Outcome)
_SEND, _ACK = _KINDS.index(Kind.SEND), _KINDS.index(Kind.ACK)
_OK, _REFUSED = _OUTCOMES.index(Outcome.OK), _OUTCOMES.index(Outcome.REFUSED)

TWIN = Twin("FLR-2", ("queue_offset", "value"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def floor_stays(trace: Trace) -> Changes:
    for ack, later in planting.acknowledged_long_before(trace):
        yield partial(
            lambda a, b: planting.reading_after(trace, b, a.queue_offset or 0, like=a), ack, later
        )


def floor_follows(trace: Trace) -> Changes:
    for ack, _ in planting.acknowledged_long_before(trace):
        yield partial(lambda a: planting.reading_after(trace, a, a.queue_offset or 0), ack)


DEFECTS = (
    Mutant(
        "floor-stays",
        "FLR-2",
        "the store tells a floor that was passed long before",
        floor_stays,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "floor-follows-at-once",
        None,
        "the store tells a floor that has just been passed",
        floor_follows,
        generated=False,
        consumed=LEASED,
    ),
)
