"""Nobody is handed a message of a key while another member's lease of another message of that key lives.

So the messages of a key are worked on one after the other, whoever of the members does it: who holds one keeps all that
lie behind it. What is held, and which of two hand-outs certainly came in the other's lifetime, is said in
`specs.facts.message_leases`. Says nothing of several messages of a key that one member is handed together, nor of
messages without a key; that one message has two holders is another clause's to say, and what a member works on when its
lease is over nobody's.

It is the broker's promise over all members of a group. That one client calls its listener for one message of a key at a
time, of those that lie with it, is ORD-11's; and where nobody tells hand-outs and one message of a lane is in flight at
a time, ORD-3 says of calls what is said of hand-outs here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, CONNECTED, NO_WALL_CLOCK_STEP, NOT_REMOVED
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.message_leases import LEASE_COLUMNS, OF_LEASES, Message, Request, events
from specs.facts.message_names import offsets
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Segments, by_time, dense
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "KEY-1"
TITLE = "one holder of a key at a time"
STATEMENT = "No two members of a group hold unfinished messages of one key at once."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, CONNECTED, NOT_REMOVED)
SOURCES = ("docs/sources.md#holders-of-a-key",)
KINDS = OF_LEASES
NEEDS = frozenset({Kind.RECEIVE})
COLUMNS = (*LEASE_COLUMNS, "sharding_key")


@dataclass(frozen=True, slots=True)
class TwoHoldersOfAKey(Finding):
    first: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
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
                    findings.shown(TwoHoldersOfAKey, {"first": held.place, "second": row.place})
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


def explain(found: TwoHoldersOfAKey) -> str:
    first, second = sorted((found.first, found.second), key=lambda row: row.seq_begin)
    later = ms(over_us(second) - first.started_us)
    return (
        f"{who(second)} was handed offset {second.queue_offset} of {second.lane} (key {second.sharding_key}) at "
        f"{at(second)}, at most {later} after {who(first)} had been handed offset {first.queue_offset} of that key at "
        f"{at(first)}, whose lease had not ended"
    )
