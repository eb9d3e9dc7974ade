"""Sets of offsets in as many pairs as they have gaps."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


class Intervals:
    """A set of whole numbers kept as disjoint half-open ranges; finished offsets are one or two of them."""

    __slots__ = ("_starts", "_stops")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def add(self, start: int, stop: int | None = None) -> None:
        """Add one number, or the range start..stop-1."""
        stop = start + 1 if stop is None else stop
        if stop <= start:
            return
        starts, stops = self._starts, self._stops
        if not stops or start > stops[-1]:
            starts.append(start)
            stops.append(stop)
            return
        if start >= starts[-1]:  # mostly the next number
            if stop > stops[-1]:
                stops[-1] = stop
            return
        low = bisect_left(stops, start)
        high = bisect_right(starts, stop)
        if low < high:
            start = min(start, starts[low])
            stop = max(stop, stops[high - 1])
        starts[low:high] = [start]
        stops[low:high] = [stop]

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._starts, number) - 1
        return index >= 0 and number < self._stops[index]

    def first_present(self, start: int) -> int | None:
        """The smallest number at or after `start` that is in the set."""
        index = bisect_right(self._starts, start) - 1
        if index >= 0 and start < self._stops[index]:
            return start
        return self._starts[index + 1] if index + 1 < len(self._starts) else None

    def __bool__(self) -> bool:
        return bool(self._starts)

    def clear(self) -> None:
        self._starts.clear()
        self._stops.clear()

    def ranges(self) -> Sequence[tuple[int, int]]:
        return list(zip(self._starts, self._stops, strict=True))
