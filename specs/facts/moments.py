"""Moments: which event was the last before one, or the first after it."""

from collections.abc import Callable

import numpy as np

from specs.facts.columns import NEVER, NOWHERE, Ints, Mask
from specs.facts.segments import (
    Timeline,
    chosen,
    first_above,
    first_fitting,
    highest_so_far,
    ints,
    pairs,
)


class Line:
    """Events, each with a key and a moment. Questions are arrays of (key, moment); answers are the events' positions.

    key, time: of all rows; where: the positions of those that are events.
    """

    __slots__ = ("_key", "_line", "where")

    def __init__(self, key: Ints, time: Ints, where: Ints) -> None:
        self._line, self.where = Timeline(key[where], time[where]), where
        self._key = key

    def last_before(self, key: Ints, time: Ints) -> Ints:
        """The last event strictly before; NOWHERE where there is none."""
        return chosen(self.where, self._line.last_before(key, time), NOWHERE)

    def last_before_with(self, key: Ints, time: Ints, fits: Callable[[Ints, Ints], Mask]) -> Ints:
        """Likewise, of those that fit. fits: of these questions (by index), does the event at this position?"""
        return self._fitting(*self._before(key, time), fits, step=-1)

    def first_reaching(self, key: Ints, time: Ints, values: Ints, least: Ints) -> Ints:
        """The first event strictly before with at least this value. values: of all rows."""
        start, stop = self._before(key, time)
        events = chosen(self.where, self._line.order, NOWHERE)
        highest = values[events[highest_so_far(self._key[events], values[events])]]
        place = np.maximum(first_above(self._key[events], highest, key, least - 1), start)
        return chosen(events, np.where(place < stop, place, NOWHERE), NOWHERE)

    def last_within(self, key: Ints, values: Ints, most: Ints) -> Ints:
        """The last event with at most this value, whenever. values: of all rows."""
        events = chosen(self.where, self._line.order, NOWHERE)[::-1]
        keys, low = -self._key[events], -values[events]
        place = first_above(keys, low[highest_so_far(keys, low)], -key, -most - 1)
        place = np.where(place < len(events), place, NOWHERE)
        found = chosen(events, place, NOWHERE)
        return np.where(chosen(self._key, found, NOWHERE) == key, found, NOWHERE)

    def highest_before(self, key: Ints, time: Ints, values: Ints) -> Ints:
        """The event strictly before with the highest value; of equal ones the earliest. values: of all rows."""
        start, stop = self._before(key, time)
        events = chosen(self.where, self._line.order, NOWHERE)
        highest = highest_so_far(self._key[events], values[events])
        place = chosen(highest, np.where(start < stop, stop - 1, NOWHERE), NOWHERE)
        return chosen(events, place, NOWHERE)

    def first_after(self, key: Ints, time: Ints) -> Ints:
        """The first event strictly after; NOWHERE where there is none."""
        start, stop = self._after(key, time)
        place = chosen(self._line.order, np.where(start < stop, start, NOWHERE), NOWHERE)
        return chosen(self.where, place, NOWHERE)

    def first_after_with(self, key: Ints, time: Ints, fits: Callable[[Ints, Ints], Mask]) -> Ints:
        """Likewise, of those that fit. fits: of these questions (by index), does the event at this position?"""
        return self._fitting(*self._after(key, time), fits, step=1)

    def count_before(self, key: Ints, time: Ints) -> Ints:
        """How many events strictly before."""
        return self._line.count_before(key, time)

    def within(self, key: int, since: int, until: int) -> Ints:
        """The events of one key strictly after one moment and before another, in their order."""
        start, stop = self._line.between(ints([key]), ints([since + 1]), ints([until]))
        return self.where[self._line.order[int(start[0]) : int(stop[0])]]

    def between(
        self, key: Ints, since: Ints, until: Ints, fits: Callable[[Ints, Ints], Mask]
    ) -> tuple[Ints, Ints]:
        """Each question, by its index, beside every event strictly between these two moments that fits."""
        events = chosen(self.where, self._line.order, NOWHERE)
        found = [np.zeros((2, 0), np.int64)]
        for index, place in pairs(*self._line.between(key, since + 1, until)):
            some = fits(index, events[place])
            found.append(np.stack([index[some], events[place[some]]]))
        indexes, places = np.concatenate(found, axis=1)
        return indexes, places

    def all_of(self, key: Ints) -> tuple[Ints, Ints]:
        """Each question beside every event of its key."""
        since, until = np.full((2, len(key)), [[-NEVER], [NEVER]])
        return self.between(key, since, until, lambda index, _: np.ones(len(index), np.bool_))

    def _fitting(
        self, start: Ints, stop: Ints, fits: Callable[[Ints, Ints], Mask], *, step: int
    ) -> Ints:
        events = chosen(self.where, self._line.order, NOWHERE)
        found = first_fitting(
            start, stop, lambda index, place: fits(index, events[place]), step=step
        )
        return chosen(events, found, NOWHERE)

    def _before(self, key: Ints, time: Ints) -> tuple[Ints, Ints]:
        start = self._line.start_of(key)
        return start, np.maximum(start, self._line.until(key, time))

    def _after(self, key: Ints, time: Ints) -> tuple[Ints, Ints]:
        return self._line.until(key, time + 1), self._line.start_of(key + 1)
