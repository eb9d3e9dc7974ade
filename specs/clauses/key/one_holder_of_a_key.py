"""Nobody is handed a message of a key while another member's lease of another message of that key lives.

So the messages of a key are worked on one after the other, whoever of the members does it: who holds one keeps all that
lie behind it. What is held, and which of two hand-outs certainly came in the other's lifetime, is said in
`specs.clauses.message_leases`. Says nothing of several messages of a key that one member is handed together, nor of
messages without a key; that one message has two holders is another clause's to say, and what a member works on when its
lease is over nobody's.

It is the broker's promise over all members of a group. That one client calls its listener for one message of a key at a
time, of those that lie with it, is ORD-11's; and where nobody tells hand-outs and one message of a lane is in flight at
a time, ORD-3 says of calls what is said of hand-outs here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.message_leases import CONNECTED, OF_LEASES, HandOuts, Names
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, NOT_REMOVED
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, who
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


@dataclass(frozen=True, slots=True)
class TwoHoldersOfAKey(Finding):
    first: Row
    second: Row


class LaneJudge(Judge):
    """last: the last hand-out of each key. offsets: of each key, the messages that somebody was handed."""

    __slots__ = ("handed", "last", "names", "offsets")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.handed = HandOuts(context)
        self.names = Names()
        self.last: dict[str, Row] = {}
        self.offsets: dict[str, set[int]] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        self.handed.asked(self.names.begins(row))
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        row = self.names.ends(row)
        if row.kind is not Kind.RECEIVE:
            self.handed.answered(row)
            return NOTHING
        self.handed.handed_out(row)
        key, offset = row.sharding_key, row.queue_offset
        if row.outcome is not Outcome.OK or key is None or offset is None or row.client_id is None:
            return NOTHING
        before, self.last[key] = self.last.get(key), row
        if before is not None and before.client_id != row.client_id:
            self.opportunities += 1
        found = list(self._held_by_others(key, row))
        self.offsets.setdefault(key, set()).add(offset)
        return found

    def _held_by_others(self, key: str, row: Row) -> Iterable[Finding]:
        """Of the key's other messages: those that another member certainly held when this one was handed out."""
        mine = self.offsets.get(key, set())
        mine.intersection_update(
            self.handed.last
        )  # who was told that it is finished has it no more
        kept_from = self.context.kept_from.get(row.queue, 0)
        for offset in sorted(mine - {row.queue_offset}):
            held = self.handed.last[offset]
            is_anothers = held.row.client_id != row.client_id and offset >= kept_from
            if is_anothers and self.handed.meet(held, row):
                yield TwoHoldersOfAKey(held.row, row)


judge = LaneJudge


def explain(found: TwoHoldersOfAKey) -> str:
    first, second = sorted((found.first, found.second), key=lambda row: row.seq_begin)
    later = ms(over_us(second) - first.started_us)
    return (
        f"{who(second)} was handed offset {second.queue_offset} of {second.lane} (key {second.sharding_key}) at "
        f"{at(second)}, at most {later} after {who(first)} had been handed offset {first.queue_offset} of that key at "
        f"{at(first)}, whose lease had not ended"
    )
