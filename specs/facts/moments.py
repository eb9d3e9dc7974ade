"""Moments: which event was the last before one, or the first after it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specs.facts.segments import NEVER, NOWHERE, Ints, Mask, Timeline, chosen, first_fitting


class Line:
    """Events, each with a key and a moment. Questions are arrays of (key, moment); answers are the events' positions.

    key, time: of all rows; where: the positions of those that are events.
    """

    __slots__ = ("_line", "where")

    def __init__(self, key: Ints, time: Ints, where: Ints) -> None:
        self._line, self.where = Timeline(key[where], time[where]), where

    def last_before(self, key: Ints, time: Ints) -> Ints:
        """The last event strictly before; NOWHERE where there is none."""
        return chosen(self.where, self._line.last_before(key, time), NOWHERE)

    def first_after(self, key: Ints, time: Ints) -> Ints:
        """The first event strictly after; NOWHERE where there is none."""
        start, stop = self._after(key, time)
        place = chosen(self._line.order, np.where(start < stop, start, NOWHERE), NOWHERE)
        return chosen(self.where, place, NOWHERE)

    def first_after_with(self, key: Ints, time: Ints, fits: Callable[[Ints, Ints], Mask]) -> Ints:
        """Likewise, of those that fit. fits: of these questions (by index), does the event at this position?"""
        start, stop = self._after(key, time)
        events = chosen(self.where, self._line.order, NOWHERE)
        found = first_fitting(start, stop, lambda index, place: fits(index, events[place]))
        return chosen(events, found, NOWHERE)

    def count_before(self, key: Ints, time: Ints) -> Ints:
        """How many events strictly before."""
        return self._line.count_before(key, time)

    def _after(self, key: Ints, time: Ints) -> tuple[Ints, Ints]:
        return self._line.between(key, time + 1, np.full(len(key), NEVER, np.int64))
