"""Tenures: who holds a lane, from when on, and where that hold was moved.

A *tenure* is an incarnation's hold of a lane (`Rows.incarnation` says who is told apart): from its ADD, where that
was seen, or else from its first row. An incarnation that adds the lane again begins another one. Where a history begins
late, a tenure without an ADD may be older than it, and nobody knows what it did then.

A *stand* is a part of a tenure in which nobody moved it. An operator's RESET moves every tenure of its lane, when it
begins. A pull that was told to go on further back than it asked moves its tenure, when the answer comes; one that names
no incarnation moves all that its client holds there. A log without pulls tells of no such move, and is read as if there
were none.
"""

from functools import cached_property

import numpy as np

from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.moments import Line
from specs.facts.pulls import told_back
from specs.facts.rows import Rows
from specs.facts.segments import chosen, dense, first_of_each, positions
from specs.vocabulary import Kind

TENURE_KINDS = frozenset({Kind.ADD, Kind.RESET, Kind.PULL})
"""The rows that begin and move tenures, beside those that are of one."""
TENURE_COLUMNS = ("client_id", "code", "incarnation", "queue_offset", "value")


class Tenures:
    """Of each row its tenure. All are arrays, a value for each row."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    @cached_property
    def named(self) -> Mask:
        """Does the row name an incarnation? Only such rows are of a tenure."""
        found: Mask = (self.rows.names_incarnation) & (self.rows.group != NO_TEXT)
        return found

    @cached_property
    def add(self) -> Ints:
        """The ADD that began the tenure; NOWHERE where it was not seen."""
        rows = self.rows
        adds = Line(rows.incarnation, rows.begin, positions(rows.are(Kind.ADD) & self.named))
        return adds.last_before(rows.incarnation, rows.begin + 1)

    @cached_property
    def number(self) -> Ints:
        return dense(self.rows.incarnation, self.add)[0]

    @cached_property
    def period(self) -> Ints:
        """A number of the tenure and the last RESET."""
        return dense(self.number, self.reset)[0]

    @cached_property
    def message(self) -> Ints:
        """Of each delivery and dead letter a number of its tenure and offset; NOWHERE of other rows."""
        rows, found = self.rows, np.full(self.rows.size, NOWHERE, np.int64)
        mine = positions(rows.are(Kind.DELIVER, Kind.DEAD_LETTER) & self.named)
        found[mine] = dense(self.number[mine], rows.offset[mine])[0]
        return found

    def may_be_older(self, where: Ints) -> Mask:
        """May the tenure of each of these rows have begun before the history did, which begins late?"""
        found: Mask = self.rows.begins_late(where) & (self.add[where] == NOWHERE)
        return found

    @cached_property
    def stand(self) -> Ints:
        return dense(self.period, self._moves)[0]

    @cached_property
    def unmoved(self) -> Mask:
        """Was the tenure seen to begin, and has nobody moved it since, when the row began?"""
        since = chosen(self.rows.begin, self.add, NEVER)
        reset = chosen(self.rows.begin, self.reset, NONE)
        found: Mask = (
            (self.add != NOWHERE) & (reset < since) & (self._moves == self._moves[self.add])
        )
        return found

    def may_be_reset(self, where: Ints) -> Mask:
        """Had an operator's RESET moved the tenure of each of these rows, or was one under way as it was added?

        Of a tenure of which nobody saw the ADD, any RESET of its lane may have.
        """
        rows, add = self.rows, self.add[where]
        since = chosen(rows.begin, add, NONE)
        resets = Line(rows.lane, rows.begin, rows.of(Kind.RESET))
        longest = resets.highest_before(rows.lane[where], since, rows.end)
        found: Mask = self.reset[where] != chosen(self.reset, add, NOWHERE)
        return found | (chosen(rows.end, longest, NONE) > since)

    def moved_to(self, row: int) -> int:
        """The highest offset to which RESETs may have moved the row's tenure by its begin; -1 without one."""
        rows, add = self.rows, self.add[[row]]
        mine = rows.are(Kind.RESET) & (rows.lane == rows.lane[row]) & (rows.begin < rows.begin[row])
        mine &= rows.end > chosen(rows.begin, add, NONE)
        value = rows.value[mine]
        return int(np.where(value < 0, NEVER, value).max(initial=-1))

    def moved_after(self, where: Ints, since: Ints) -> Ints:
        """When, after a moment, the stand of each of these rows ends: the lane is added anew, or moved; or NEVER."""
        rows, back = self.rows, self.rows.shared(told_back)
        named, clients = self.named[back], rows.lane_client
        moves = (
            (rows.incarnation, rows.begin, positions(rows.are(Kind.ADD) & self.named)),
            (rows.lane, rows.begin, rows.of(Kind.RESET)),
            (rows.incarnation, rows.end, back[named]),
            (clients, rows.end, back[~named]),
        )
        found = np.full(len(where), NEVER, np.int64)
        for key, time, at in moves:
            then = Line(key, time, at).first_after(key[where], since)
            found = np.minimum(found, chosen(time, then, NEVER))
        return found

    def stands_until_end(self, where: Ints) -> Mask:
        """Of each of these rows: does nobody add the lane anew in its incarnation, nor move it, until it ends?"""
        found: Mask = self.moved_after(where, self.rows.begin[where]) >= self.rows.end[where]
        return found

    @cached_property
    def reset(self) -> Ints:
        """The last RESET of the row's lane that began before it; NOWHERE without one."""
        rows = self.rows
        return Line(rows.lane, rows.begin, rows.of(Kind.RESET)).last_before(rows.lane, rows.begin)

    @cached_property
    def met_a_reset(self) -> Mask:
        """Had a RESET of the lane, begun by now, not been over when the first row of the tenure began?"""
        rows = self.rows
        first = first_of_each(self.number, int(self.number.max(initial=NOWHERE)) + 1)
        lasted = Line(rows.lane, rows.end, rows.of(Kind.RESET))
        begun = Line(rows.lane, rows.begin, rows.of(Kind.RESET))
        over = lasted.count_before(rows.lane, rows.begin[first[self.number]])
        found: Mask = begun.count_before(rows.lane, rows.begin) > over
        return found

    @cached_property
    def _moves(self) -> Ints:
        """How often the tenure had been told to go on further back, when the row began."""
        rows, where = self.rows, self.rows.shared(told_back)
        if not len(where):
            return np.zeros(rows.size, np.int64)
        named = self.named[where]
        clients = rows.lane_client
        by_tenure = Line(self.number, rows.end, where[named])
        by_client = Line(clients, rows.end, where[~named])
        return by_tenure.count_before(self.number, rows.begin) + by_client.count_before(
            clients, rows.begin
        )


class OfTenures:
    """Events by the tenure that they are of; those that name none by their client and lane. time: of each row."""

    def __init__(self, rows: Rows, events: Mask, time: Ints) -> None:
        tenures = rows.shared(Tenures)
        self._tenure, self._client = tenures.number, rows.lane_client
        self._own = Line(self._tenure, time, positions(events & tenures.named))
        self._nobodys = Line(self._client, time, positions(events & ~tenures.named))

    def own(self, row: int, since: int, until: int) -> Ints:
        """Those of the row's tenure after one moment and before another, by time."""
        return self._own.within(int(self._tenure[row]), since, until)

    def nobodys(self, row: int, since: int, until: int) -> Ints:
        """Likewise, those of its client's that name none: they may be of any of them."""
        return self._nobodys.within(int(self._client[row]), since, until)
