"""Arithmetic on many sequences at once: whole arrays, no loop over rows.

A *segment* is what belongs together (a lane, an incarnation): every row carries the number of its segment, rows
lie in the order of their time, and rows of different segments may be mixed. All results are positions (int64,
-1: there is none) or values in the order of the rows that were given.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from specs.facts.columns import NEVER, NOWHERE, Ints, Mask

_ROOM = 1 << 62
_SMALL = 1 << 16
_PAIRS = 1 << 20
_APART = 64
"""So far apart rows are in order where all are nearly so."""


def ints(values: Any) -> Ints:
    return np.asarray(values, dtype=np.int64)


def positions(mask: Mask) -> Ints:
    """Where the mask is true."""
    return np.flatnonzero(mask).astype(np.int64, copy=False)


def dense(*columns: Ints) -> tuple[Ints, int]:
    """Number the distinct combinations of the columns from 0: (a number per row, how many there are).

    The numbers follow the order of the combinations.
    """
    code, count = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        if not len(column):
            return code, 0
        low = int(column.min())
        width = int(column.max()) - low + 1
        if width == 1:  # it tells nothing apart
            continue
        if count > 1 and count * width > max(_SMALL, 4 * len(code)):  # too many to count over
            code, count = _ranked(code, count)
        if count * width >= _ROOM:
            column, width = _ranked(column)
            low = 0
        code = code * width + (column - low)
        count *= width
    return _ranked(code, count) if count > 1 else (code, count)


def _ranked(code: Ints, span: int | None = None) -> tuple[Ints, int]:
    if span is not None and span <= max(_SMALL, 4 * len(code)):
        present = np.zeros(span, np.bool_)
        present[code] = True
        if present.all():
            return code, span
        numbers = np.cumsum(present) - 1
        return numbers[code], int(numbers[-1]) + 1
    order = by_number(code)
    ascending = code[order]
    new = np.ones(len(code), np.bool_)
    new[1:] = ascending[1:] != ascending[:-1]
    ranked = np.empty(len(code), np.int64)
    ranked[order] = np.cumsum(new) - 1
    return ranked, int(new.sum())


def composite(high: Ints, low: Ints) -> Ints:
    """One number per row that sorts by (high, low). high must be small numbers from 0."""
    if not len(high):
        return high.astype(np.int64)
    base = int(low.min())
    width = int(low.max()) - base + 1
    if (int(high.max()) + 1) * width >= _ROOM:
        low, base = _ranked(low)[0], 0
        width = int(low.max()) + 1
    return high * width + (low - base)


def by_time(segment: Ints, time: Ints) -> Ints:
    """The positions by segment and time; of equal ones the earlier first. By one number: quicker than by two."""
    return by_number(composite(segment - segment.min(initial=NEVER), time))


def by_number(number: Ints) -> Ints:
    """The positions by number; of equal ones the earlier first.

    What is nearly in order takes no time. Else by 16 bits at a time, which numpy sorts in one go.
    """
    if not (number[1:] < number[:-1]).any():
        return np.arange(len(number), dtype=np.int64)
    low = int(number.min())
    digits = (int(number.max()) - low).bit_length() // 16 + 1
    falls = np.count_nonzero(number[_APART:] < number[:-_APART])
    if falls < len(number) >> 4 or digits > 3:
        return np.argsort(number, kind="stable").astype(np.int64, copy=False)
    number = number - low
    order = np.argsort((number & 0xFFFF).astype(np.uint16), kind="stable")
    for digit in range(1, digits):
        high = (number[order] >> 16 * digit).astype(np.uint16)
        order = order[np.argsort(high, kind="stable")]
    return order.astype(np.int64, copy=False)


def distinct(values: Ints) -> Ints:
    """The different values, ascending."""
    low = int(values.min(initial=NEVER))
    span = int(values.max(initial=low)) - low + 1
    if span > max(_SMALL, 4 * len(values)):
        return np.sort(pc.unique(pa.array(values)).to_numpy())
    present = np.zeros(span, np.bool_)
    present[values - low] = True
    return positions(present) + low


def first_of_each(code: Ints, count: int) -> Ints:
    """The first position of every number 0..count-1; NOWHERE for one that does not occur."""
    first = np.full(count, NOWHERE, np.int64)
    where = np.arange(len(code), dtype=np.int64)
    first[code[::-1]] = where[::-1]
    return first


def is_first(*columns: Ints) -> Mask:
    """Is this the first row with its combination of the columns?"""
    code, count = dense(*columns)
    result = np.zeros(len(code), np.bool_)
    if count:
        result[first_of_each(code, count)] = True
    return result


class Segments:
    """Rows by segment; every question is about the rows before a row in its own segment."""

    __slots__ = ("_begins", "_order", "_start", "size")

    def __init__(self, segment: Ints) -> None:
        self.size = len(segment)
        self._order = by_number(segment)
        sorted_segment = segment[self._order]
        self._begins = np.ones(self.size, np.bool_)
        self._begins[1:] = sorted_segment[1:] != sorted_segment[:-1]
        where = np.arange(self.size, dtype=np.int64)
        self._start = (
            np.maximum.accumulate(np.where(self._begins, where, 0)) if self.size else where
        )

    def _back(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        result = np.empty_like(values)
        result[self._order] = values
        return result

    def previous(self) -> Ints:
        """The row before."""
        before = np.full(self.size, NOWHERE, np.int64)
        if self.size:
            before[1:] = np.where(self._begins[1:], NOWHERE, self._order[:-1])
        return self._back(before)

    def nth(self) -> Ints:
        """How many rows come before."""
        return self._back(np.arange(self.size, dtype=np.int64) - self._start)

    def last_before(self, mask: Mask) -> Ints:
        """The last row before at which the mask holds."""
        where = np.arange(self.size, dtype=np.int64)
        marked = np.where(mask[self._order], where, NOWHERE)
        if not self.size:
            return where
        last = np.maximum.accumulate(
            np.maximum(marked, self._start - 1)
        )  # never from an earlier segment
        before = np.empty(self.size, np.int64)
        before[0] = NOWHERE
        before[1:] = last[:-1]
        found = before >= self._start
        return self._back(np.where(found, self._order[np.maximum(before, 0)], NOWHERE))

    def count_before(self, mask: Mask) -> Ints:
        """At how many rows before does the mask hold?"""
        total = np.cumsum(mask[self._order])
        before = np.zeros(self.size, np.int64)
        before[1:] = total[:-1]
        return self._back(before - before[self._start] if self.size else before)

    def highest_before(self, values: Ints) -> Ints:
        """The row before with the highest value; of equal ones the earliest."""
        if not self.size:
            return np.zeros(0, np.int64)
        ordered = values[self._order]
        segment = np.cumsum(self._begins) - 1
        running = np.maximum.accumulate(composite(segment, ordered))
        raised = np.ones(self.size, np.bool_)
        raised[1:] = running[1:] > running[:-1]
        holder = np.maximum.accumulate(np.arange(self.size, dtype=np.int64) * raised)
        before = np.empty(self.size, np.int64)
        before[0] = NOWHERE
        before[1:] = holder[:-1]
        return self._back(
            np.where(before >= self._start, self._order[np.maximum(before, 0)], NOWHERE)
        )


class Timeline:
    """Events of segments, by time: what was the last one before a moment?

    segment and time of the events; time need not be sorted. Among events of equal time the later given is later.
    """

    __slots__ = ("_base", "_distinct", "_events", "_keys", "_order", "_starts", "_width")

    def __init__(self, segment: Ints, time: Ints) -> None:
        self._events = len(segment)
        self._distinct: Ints | None = None
        self._starts: Ints | None = None
        if not self._events:
            self._order, self._starts = np.zeros(0, np.int64), np.zeros(1, np.int64)
            return
        if (int(segment.max()) + 2) * (int(time.max()) - int(time.min()) + 3) >= _ROOM:
            self._distinct, time = np.unique(time, return_inverse=True)
        self._base = int(time.min())
        self._width = int(time.max()) - self._base + 3
        keys = segment * self._width + (time - (self._base - 1))
        self._order = by_number(keys)
        self._keys = keys[self._order]
        if int(segment.max()) <= max(_SMALL, 4 * self._events):
            self._starts = np.append(0, np.cumsum(np.bincount(segment + 1)))  # of NOWHERE as well

    def until(self, segment: Ints, time: Ints) -> Ints:
        """How many events come before (segment, time)."""
        if not self._events:
            return np.zeros(len(segment), np.int64)
        if self._distinct is not None:
            time = np.searchsorted(self._distinct, time)
        # A moment outside of the events' span sorts before or after all of them.
        low, high = self._base, self._base + self._width - 3
        place = np.clip(time, low - 1, high + 1) - low + 1
        return ints(np.searchsorted(self._keys, segment * self._width + place))

    def start_of(self, segment: Ints) -> Ints:
        """How many events come before the segment."""
        if self._starts is not None:
            return self._starts[np.clip(segment + 1, 0, len(self._starts) - 1)]
        return ints(np.searchsorted(self._keys, segment * self._width))

    def last_before(self, segment: Ints, time: Ints) -> Ints:
        """The last event of the segment with a time strictly before; NOWHERE if there is none."""
        if not self._events:
            return np.full(len(segment), NOWHERE, np.int64)
        until, start = self.until(segment, time), self.start_of(segment)
        found = self._order[until - 1]
        found[until <= start] = NOWHERE
        return found

    def between(self, segment: Ints, since: Ints, until: Ints) -> tuple[Ints, Ints]:
        """The segment's events from `since` on and strictly before `until`: the places start..stop-1 of `order`."""
        start = self.until(segment, since)
        return start, np.maximum(start, self.until(segment, until))

    @property
    def order(self) -> Ints:
        """The events, segment by segment and by time."""
        return self._order

    def count_before(self, segment: Ints, time: Ints) -> Ints:
        """How many events of the segment have a time strictly before."""
        return self.until(segment, time) - self.start_of(segment)


class Spans:
    """Spans low..high-1 of numbers, in segments and by time: which was the first to cover a number?"""

    __slots__ = ("_high", "_highest", "_line", "_low", "_segment")

    def __init__(self, segment: Ints, low: Ints, high: Ints, time: Ints) -> None:
        self._line = Timeline(segment, time)
        order = self._line.order
        self._segment, self._low, self._high = segment[order], low[order], high[order]
        self._highest = self._high[highest_so_far(self._segment, self._high)]

    def first_covering(self, segment: Ints, number: Ints, until: Ints) -> Ints:
        """The segment's first span that covers the number, of those with a time strictly before; or NOWHERE."""
        start, stop = self._line.start_of(segment), self._line.until(segment, until)
        # Where nothing before has reached beyond the number, nothing covers it.
        start = np.maximum(start, first_above(self._segment, self._highest, segment, number))

        def covers(index: Ints, place: Ints) -> Mask:
            found: Mask = (self._low[place] <= number[index]) & (number[index] < self._high[place])
            return found

        return chosen(self._line.order, first_fitting(start, stop, covers), NOWHERE)


class Batches:
    """Indexes that belong together: of each batch which they are. A batch is a number, small or large."""

    __slots__ = ("_first", "_number", "_order", "_size")

    def __init__(self, batch: Ints) -> None:
        self._number, count = dense(batch)
        self._order = by_number(self._number)
        self._size = np.bincount(self._number, minlength=count)
        self._first = np.cumsum(self._size) - self._size

    def lowest(self, values: Ints) -> Ints:
        """Of each batch, in the order of their numbers."""
        return np.minimum.reduceat(values[self._order], self._first) if len(values) else values

    def highest(self, values: Ints) -> Ints:
        return np.maximum.reduceat(values[self._order], self._first) if len(values) else values

    def members(self) -> Iterator[Ints]:
        """Of each batch its first index, then its second, and so on; NOWHERE of one that has no more."""
        for rank in range(int(self._size.max(initial=0))):
            has = rank < self._size
            place = np.where(has, self._first + rank, 0)
            yield np.where(has, self._order[place], NOWHERE)


class Peaks:
    """Values in a row, of which one asks where the next one is that is high enough: in steps, not one by one."""

    __slots__ = ("_levels",)

    def __init__(self, values: Ints) -> None:
        self._levels = [values]  # each has the highest of every two of the one before
        while len(values) > 1:
            values = np.maximum.reduceat(values, np.arange(0, len(values), 2))
            self._levels.append(values)

    def first_reaching(self, start: Ints, stop: Ints, least: Ints) -> Ints:
        """The first place of each start..stop-1 with at least this value; NOWHERE where there is none."""
        place = start.copy()
        up = list(enumerate(self._levels))
        for ascends, (level, highest) in [
            *((True, each) for each in up),
            *((False, each) for each in up[::-1]),
        ]:
            size = 1 << level
            passes = (place % size == 0) & (place + size <= stop)
            if ascends:  # until the next step may be twice as long
                passes &= (place // size) % 2 == 1
            passes[passes] &= highest[place[passes] // size] < least[passes]
            place[passes] += size
        return np.where(place < stop, place, NOWHERE)

    def first_fitting(
        self, start: Ints, stop: Ints, least: Ints, fits: Callable[[Ints, Ints], Mask]
    ) -> Ints:
        """Likewise, of the places that fit. fits: of these indexes, does this place of each?"""
        found = np.full(len(start), NOWHERE, np.int64)
        looking, place = np.arange(len(start), dtype=np.int64), start
        while len(looking):
            place = self.first_reaching(place, stop[looking], least[looking])
            looking, place = looking[place != NOWHERE], place[place != NOWHERE]
            if not len(looking):
                break
            here = fits(looking, place)
            found[looking[here]] = place[here]
            looking, place = looking[~here], place[~here] + 1
        return found


def highest_so_far(segment: Ints, values: Ints) -> Ints:
    """The position of the highest value up to each row and with it; segments lie one after the other, ascending."""
    if not len(values):
        return np.zeros(0, np.int64)
    running = np.maximum.accumulate(composite(segment - segment[0], values))
    raised = np.ones(len(values), np.bool_)
    raised[1:] = running[1:] > running[:-1]
    return np.maximum.accumulate(np.where(raised, np.arange(len(values), dtype=np.int64), 0))


def first_above(segments: Ints, values: Ints, segment: Ints, value: Ints) -> Ints:
    """Of each segment the first place with a value above this one, or where the segment ends.

    segments, values: of all places; both ascend, the values within each segment.
    """
    low = min((int(each.min()) for each in (segments, segment) if len(each)), default=0)
    both = composite(np.concatenate([segments, segment]) - low, np.concatenate([values, value]))
    found = np.searchsorted(both[: len(segments)], both[len(segments) :], side="right")
    return found.astype(np.int64, copy=False)


def first_fitting(
    start: Ints, stop: Ints, fits: Callable[[Ints, Ints], Mask], *, step: int = 1
) -> Ints:
    """For each index the first place of start..stop-1 that fits it; NOWHERE if none does.

    fits: of these indexes, does this place of each fit? It is asked of all that still look at once, a place at a time.
    step: 1, or -1 for the last place that fits.
    """
    found = np.full(len(start), NOWHERE, np.int64)
    looking = np.flatnonzero(start < stop)
    place = (start if step > 0 else stop - 1)[looking]
    while len(looking):
        here = fits(looking, place)
        found[looking[here]] = place[here]
        looking, place = looking[~here], place[~here] + step
        inside = (place >= start[looking]) & (place < stop[looking])
        looking, place = looking[inside], place[inside]
    return found


def pairs(start: Ints, stop: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Every index beside each place of its start..stop-1: about a million pairs at a time, all of an index at once."""
    count = np.maximum(stop - start, 0)
    total = np.cumsum(count)
    low = 0
    while low < len(count):
        done = int(total[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(total, done + _PAIRS, "right")))
        times = count[low:high]
        index = np.repeat(np.arange(low, high, dtype=np.int64), times)
        first = start[low:high] - (total[low:high] - times - done)
        yield index, np.arange(len(index), dtype=np.int64) + np.repeat(first, times)
        low = high


def chosen(values: Ints, where: Ints, otherwise: int) -> Ints:
    """values[where], and `otherwise` where there is no position."""
    if not len(values):
        return np.full(len(where), otherwise, np.int64)
    found = values[where]
    found[where < 0] = otherwise
    return found
