"""What a concurrent consumer sends back comes no sooner than its delay level, counted up by one.

A copy in the group's retry topic that carries the counter n was made by a send-back of a message that carried n - 1.
It is delivered no sooner than the delay of that send-back's level after the send-back *began* (the broker counts from
when it stored the copy, which is later), less a millisecond, since brokers keep time in whole ones, and less the bound
between the clocks of the two. Level 0 asks for none: it means 3 and the counter that the message carried. Any
send-back may have been the one, whatever its answer: one that was refused because a flush took too long has stored a
copy all the same. So the earliest due time of all those that carry n - 1 counts.

Only the first delivery by a process is looked at (`attempt` 1): a client that could not send a copy back delivers it
again by itself, and shows a counter that it has counted on. A copy of a message of which no send-back was seen says
nothing, nor one of a message whose send the history does not hold: where it begins in the middle, the send-back of
which the copy was made may lie before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import CLOSED_WORLD, CONCURRENT, NO_WALL_CLOCK_STEP
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.vocabulary import RETRY_PREFIX, Key, Kind, Party

ID = "RTY-10"
TITLE = "a send-back waits for its level and counts"
STATEMENT = (
    "A message that was sent back comes again no sooner than its delay level, counted up by one."
)
PARTY = Party.PAIR
KEY = Key.MESSAGE
PREMISE = (CONCURRENT, CLOSED_WORLD, NO_WALL_CLOCK_STEP)
SOURCES = ("docs/sources.md#send-back", "docs/sources.md#delay", "docs/sources.md#concurrent-loop")
KINDS = frozenset({Kind.SEND, Kind.SEND_BACK, Kind.DELIVER})
SETTINGS = ("delay_levels",)
NEEDS = frozenset({Kind.DELIVER, Kind.SEND_BACK})

DEFAULT_LEVEL = 3
"""What level 0 means, for a message that was never sent back before."""

_UNIT_US = {"s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


def wants(row: Row) -> bool:
    """Of deliveries, only copies in a retry topic."""
    return row.kind is not Kind.DELIVER or (row.topic or "").startswith(RETRY_PREFIX)


@lru_cache(maxsize=64)
def delays_us(levels: str) -> tuple[int, ...]:
    """The delays of a table like `1s 5s 10m`, in µs, level 1 first."""
    return tuple(int(word[:-1]) * _UNIT_US[word[-1]] for word in levels.split())


@dataclass(frozen=True, slots=True)
class TooSoon(Finding):
    """wait_us: what the level means."""

    sent: Row
    returned: Row
    copy: Row
    wait_us: int


@dataclass(frozen=True, slots=True)
class Miscounted(Finding):
    sent: Row
    returned: Row
    copy: Row


class _Group:
    """What one group sent back of the message. due: by the counter that it carried, the earliest due time."""

    __slots__ = ("due", "last")

    def __init__(self) -> None:
        self.due: dict[int, tuple[int, Row, int]] = {}  # (due µs, the send-back, its wait in µs)
        self.last: Row | None = None


class MessageJudge(Judge):
    """Remembers, for each group, the send-backs of one message: one for each counter."""

    __slots__ = ("groups", "sent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.groups: dict[str, _Group] = {}
        self.sent: Row | None = None  # unless a send-back was seen before

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.group or ""
        if row.kind is Kind.SEND:
            if self.sent is None and not self.groups:
                self.sent = row
            return NOTHING
        if row.kind is Kind.SEND_BACK:
            if row.reconsume_times is not None and row.delay_level is not None:
                self._returned(
                    self.groups.setdefault(name, _Group()),
                    row,
                    row.reconsume_times,
                    row.delay_level,
                )
            return NOTHING
        group = self.groups.get(name)
        if (
            group is None
            or group.last is None
            or row.attempt != 1
            or row.topic != RETRY_PREFIX + name
        ):
            return NOTHING
        return self._copy(group, group.last, row)

    def _returned(self, group: _Group, row: Row, times: int, asked: int) -> None:
        group.last = row
        table = delays_us(self.config.delay_levels)
        level = asked or DEFAULT_LEVEL + times
        wait_us = table[min(level, len(table)) - 1] if table and level > 0 else 0
        known = group.due.get(times)
        if known is None or row.started_us + wait_us < known[0]:
            group.due[times] = (row.started_us + wait_us, row, wait_us)

    def _copy(self, group: _Group, last: Row, row: Row) -> Iterable[Finding]:
        times, sent = row.reconsume_times, self.sent
        if times is None or sent is None:
            return NOTHING
        self.opportunities += 1
        known = group.due.get(times - 1)
        if known is None:
            return (Miscounted(sent, last, row),)
        due_us, returned, wait_us = known
        if row.started_us >= due_us - MS - self.context.info.clock_bound_us:
            return NOTHING
        return (TooSoon(sent, returned, row, wait_us),)


judge = MessageJudge


def explain(found: TooSoon | Miscounted) -> str:
    returned, copy = found.returned, found.copy
    said = f"{who(copy)} was given the copy of message {copy.source_id} at {at(copy)}"
    if isinstance(found, Miscounted):
        return (
            f"{said} as retry {copy.reconsume_times}; {who(returned)} had sent it back at {at(returned)} as retry "
            f"{returned.reconsume_times}, and nobody as retry {(copy.reconsume_times or 0) - 1}"
        )
    return (
        f"{said}, {ms(copy.started_us - returned.started_us)} after {who(returned)} sent it back with level "
        f"{returned.delay_level or 'none'}, which is {ms(found.wait_us)}"
    )
