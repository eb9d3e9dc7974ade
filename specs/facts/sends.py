"""The acknowledged sends of all queues, by offset: what certainly lies there, and since when that is known.

The answer to a batch names the offset of its first message only: where the others lie readers show, which are not asked
here. A message that waits for its time lies elsewhere.
"""

import numpy as np

from specs.facts.columns import NEVER, NONE, NOWHERE, Ints
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import first_above, is_first
from specs.vocabulary import Kind, Outcome


class Sends:
    """where: the positions of all, by queue, offset and end. first: of what lies at each offset the first one."""

    def __init__(self, rows: Rows) -> None:
        delay = rows.number("delay_level")
        sent = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.offset != NONE)
        sent &= ((delay == 0) | (delay == NONE)) & (rows.end < NEVER)
        where = np.flatnonzero(sent)
        order = np.lexsort((rows.end[where], rows.offset[where], rows.queue[where]))
        self.where: Ints = where[order]
        self._queue = rows.queue[self.where]
        new = is_first(self._queue, rows.offset[self.where])
        self.first = self.where[new]
        place = np.full(rows.size, NOWHERE, np.int64)
        place[self.where] = np.cumsum(new) - 1
        self._of, self._offset = rows.queue[self.first], rows.offset[self.first]
        self._line = Line(place, rows.end, self.where)

    def of_queue(self, queue: int) -> Ints:
        """The positions of a queue's sends."""
        start, stop = np.searchsorted(self._queue, [queue, queue + 1]).tolist()
        found: Ints = self.where[start:stop]
        return found

    def between(self, queue: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """The places start..stop-1 of `first` of each queue's messages from one offset on and below another."""
        start, stop = (
            first_above(self._of, self._offset, queue, offset - 1) for offset in (low, high)
        )
        return start, np.maximum(start, stop)

    def last_before(self, place: Ints, moment: Ints) -> Ints:
        """The last send of each place that had ended before the moment; NOWHERE without one."""
        return self._line.last_before(place, moment)
