"""KEY-1 over columns: arithmetic tells the keys of which two hand-outs were open at once; only these are gone through.

A hand-out is open until something that was not refused may have ended its lease. Where members keep to one message of a
key that lasts no longer than to the next hand-out, so that nothing is left to go through.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import LEASED, STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.message_leases import COLUMNS, OF_LEASES, Message, Request, events
from specs.facts.message_names import offsets
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Segments, by_time, dense
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    offset = rows.shared(offsets)
    about = np.flatnonzero(rows.are(*OF_LEASES) & (offset != NONE) & (rows.group != NO_TEXT))
    message, _ = dense(rows.lane[about], offset[about])
    handed = rows.are(Kind.RECEIVE) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    keyed = handed & (rows.text("sharding_key") != NO_TEXT) & (rows.client != NO_TEXT)
    mine = np.flatnonzero(keyed[about])
    mine = mine[np.argsort(rows.end[about[mine]], kind="stable")]
    where, of = about[mine], message[mine]
    if not len(where):
        return
    key, _ = dense(rows.lane[where], rows.text("sharding_key")[where])
    in_turn = Segments(key)
    _count(rows, findings, where, in_turn.previous())
    over = _open_until(rows, about, message, where, of)
    latest = in_turn.highest_before(over)
    together = (latest != NOWHERE) & (over[latest] > rows.end[where])
    for each in np.unique(key[together]).tolist():
        chosen = np.unique(of[key == each])
        code = int(rows.text("sharding_key")[where[np.argmax(key == each)]])
        _Key(rows, findings, code).go_through(about[np.isin(message, chosen)].tolist())


def _count(rows: Rows, findings: Findings, where: Ints, before: Ints) -> None:
    """At stake is each hand-out of a key to another member than the last time."""
    other = (before != NOWHERE) & (rows.client[where] != rows.client[where[before]])
    for place in where[other].tolist():
        if rows.end[place] < rows.context_of(place).clock_stepped:
            findings.at_stake_times(place, 1)


def _open_until(rows: Rows, about: Ints, message: Ints, where: Ints, of: Ints) -> Ints:
    """Of each hand-out: the begin of the first request after it that may have ended its lease."""
    ends = rows.are(Kind.ACK, Kind.RELEASE) & ~rows.ended_as(Outcome.REFUSED)
    chosen = np.flatnonzero(ends[about])
    order = by_time(message[chosen], rows.begin[about[chosen]])
    chosen = chosen[order]
    ended_by, begin = message[chosen], rows.begin[about[chosen]]
    found = np.full(len(where), NEVER, np.int64)
    for place, (each, end) in enumerate(zip(of.tolist(), rows.end[where].tolist(), strict=True)):
        low, high = np.searchsorted(ended_by, [each, each + 1])
        first = low + int(np.searchsorted(begin[low:high], end, side="right"))
        if first < high:
            found[place] = begin[first]
    return found


class _Key:
    """The messages of one key of a lane, row by row. code: the key's. keyed: offsets that were handed out under it."""

    def __init__(self, rows: Rows, findings: Findings, code: int) -> None:
        self.rows, self.findings, self.code = rows, findings, code
        self.offsets = rows.shared(offsets)
        self.messages: dict[int, Message] = {}
        self.keyed: set[int] = set()

    def go_through(self, places: list[int]) -> None:
        rows, findings = self.rows, self.findings
        context = rows.context_of(places[0])
        for place in places:
            self.messages.setdefault(int(self.offsets[place]), Message(rows, findings, place))
        for now, row, begins in events(rows, places):
            if now >= context.clock_stepped:
                break
            offset = int(self.offsets[row.place])
            mine = self.messages[offset]
            if begins:
                mine.begins(row, now)
                continue
            mine.ends(row, now)
            if row.kind is Kind.RECEIVE and row.outcome is Outcome.OK and self._is_keyed(row):
                for held in self._held_by_others(offset, row, now):
                    findings.violation(sorted([held.place, row.place]))
                self.keyed.add(offset)

    def _is_keyed(self, row: Request) -> bool:
        return int(self.rows.text("sharding_key")[row.place]) == self.code and row.client != NO_TEXT

    def _held_by_others(self, offset: int, row: Request, now: int) -> Iterator[Request]:
        mine = self.messages[offset]
        kept_from = mine.context.kept_from(self.rows.queue_of(row.place), now)
        for other in sorted(self.keyed - {offset}):
            message = self.messages[other]
            held = message.last
            if held is None or held.client == row.client or other < kept_from:
                continue
            if message.is_over(now):
                continue
            if not message.lives(held, message.alive_until, row.over_us, now):
                continue
            if held.end < row.begin or (
                not mine.is_over(now) and mine.lives(row, mine.alive_until, held.over_us, now)
            ):
                yield held


TWIN = Twin("KEY-1", (*COLUMNS, "sharding_key"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def another_of_the_key(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        if row.sharding_key is not None:
            yield partial(lambda a: planting.handed_next(trace, a, STRANGER), row)


def another_key(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(
            lambda a: planting.handed_next(trace, a, STRANGER, sharding_key="planted"), row
        )


DEFECTS = (
    Mutant(
        "second-holder-of-a-key",
        "KEY-1",
        "a second member is handed the next message of a key while the first one has the last",
        another_of_the_key,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "holder-of-another-key",
        None,
        "a second member is handed a message of another key while the first one has its own",
        another_key,
        generated=False,
        consumed=LEASED,
    ),
)
