"""Look-ups of the offset that a broker stores for a lane: what each was told, and what may have been stored."""

from functools import cached_property

import numpy as np

from specs.facts.columns import NEVER, NO_TEXT, NONE, Ints
from specs.facts.requests import may_apply_until
from specs.facts.rows import Rows
from specs.facts.segments import by_time, positions
from specs.vocabulary import Kind, Outcome


def answers(rows: Rows) -> Ints:
    """Of each look-up the offset, -1 for "nothing stored"; NONE where that is not known, and of other rows."""
    nothing = rows.ended_as(Outcome.REFUSED) & (rows.value == -1)
    told = (rows.ended_as(Outcome.OK) | nothing) & rows.are(Kind.FETCH_OFFSET) & (rows.end < NEVER)
    found: Ints = np.where(told, rows.value, NONE)
    return found


class Puts:
    """What sets the stored offset of a lane: its COMMITs and RESETs that were not refused, by their begins."""

    def __init__(self, rows: Rows, lane: Ints) -> None:
        self.rows = rows
        puts = rows.are(Kind.COMMIT, Kind.RESET) & ~rows.ended_as(Outcome.REFUSED)
        self.where = lane[puts[lane]]

    @cached_property
    def until_us(self) -> Ints:
        """Until when each may have been applied."""
        return may_apply_until(self.rows, self.where)

    @cached_property
    def _latest_us(self) -> Ints:
        return np.maximum.accumulate(self.until_us)

    def begun(self, now: int) -> Ints:
        """Those that had begun by then."""
        return self.where[: np.searchsorted(self.rows.begin[self.where], now)]

    def since(self, since_us: int, now: int) -> Ints:
        """Likewise, those that may have been applied at that time or later."""
        begun, start = self.begun(now), np.searchsorted(self._latest_us, since_us)
        return begun[start:][self.until_us[start : len(begun)] >= since_us]


def each_lane(rows: Rows) -> list[tuple[Ints, Puts, Ints]]:
    """Of each lane with answered look-ups: its commits, resets and look-ups by begin, its puts, and those by end."""
    where = rows.of(Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET)
    where = where[rows.group[where] != NO_TEXT]
    where = where[by_time(rows.lane[where], rows.begin[where])]
    starts = positions(np.diff(rows.lane[where], prepend=-1) != 0)
    told = rows.shared(answers) != NONE
    lanes = [lane for lane in np.split(where, starts[1:]) if told[lane].any()]
    looks = [lane[told[lane]] for lane in lanes]
    return [
        (lane, Puts(rows, lane), some[np.argsort(rows.end[some])])
        for lane, some in zip(lanes, looks, strict=True)
    ]
