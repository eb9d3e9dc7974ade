"""Tenures: who holds a lane, from when on, and where that hold was moved.

A *tenure* is an incarnation's hold of a lane (`specs.verdicts.identity` says who is told apart): from its ADD, where
that was seen, or else from its first row. An incarnation that adds the lane again begins another one.

A *stand* is a part of a tenure in which nobody moved it. An operator's RESET moves every tenure of its lane, when it
begins. A pull that was told to go on further back than it asked moves its tenure, when the answer comes; one that names
no incarnation moves all that its client holds there. A log without pulls tells of no such move, and is read as if there
were none.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from specs.facts.moments import Line
from specs.facts.pulls import told_back
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask, chosen, dense, positions
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
        found: Mask = (self.rows.text("incarnation") != NO_TEXT) & (self.rows.group != NO_TEXT)
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
    def stand(self) -> Ints:
        return dense(self.number, self._moves, self.reset)[0]

    @cached_property
    def unmoved(self) -> Mask:
        """Was the tenure seen to begin, and has nobody moved it since, when the row began?"""
        since = chosen(self.rows.begin, self.add, NEVER)
        reset = chosen(self.rows.begin, self.reset, NONE)
        found: Mask = (
            (self.add != NOWHERE) & (reset < since) & (self._moves == self._moves[self.add])
        )
        return found

    def stands_until_end(self, where: Ints) -> Mask:
        """Of each of these rows: does nobody add the lane anew in its incarnation, nor reset it, until it ends?"""
        rows = self.rows
        adds = Line(rows.incarnation, rows.begin, positions(rows.are(Kind.ADD) & self.named))
        resets = Line(rows.lane, rows.begin, rows.of(Kind.RESET))
        begin, end = rows.begin[where], rows.end[where]
        found = np.ones(len(where), np.bool_)
        for line, key in ((adds, rows.incarnation[where]), (resets, rows.lane[where])):
            found &= line.count_before(key, begin) == line.count_before(key, end)
        return found

    @cached_property
    def reset(self) -> Ints:
        """The last RESET of the row's lane that began before it; NOWHERE without one."""
        rows = self.rows
        return Line(rows.lane, rows.begin, rows.of(Kind.RESET)).last_before(rows.lane, rows.begin)

    @cached_property
    def _moves(self) -> Ints:
        """How often the tenure had been told to go on further back, when the row began."""
        rows, where = self.rows, told_back(self.rows)
        if not len(where):
            return np.zeros(rows.size, np.int64)
        named = self.named[where]
        clients = dense(rows.lane, rows.client)[0]
        by_tenure = Line(self.number, rows.end, where[named])
        by_client = Line(clients, rows.end, where[~named])
        return by_tenure.count_before(self.number, rows.begin) + by_client.count_before(
            clients, rows.begin
        )
