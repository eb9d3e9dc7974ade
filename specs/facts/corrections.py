"""Corrections: where an incarnation was told to go on elsewhere than it had come.

Its own commits that report a broker's correction say so (`specs.facts.rows.Rows.correction`), from when they begin; and
pulls of its client since it was added that were told to go on further ahead than they asked, once they are answered.
"""

import numpy as np

from specs.facts.columns import NEVER, NO_TEXT, NONE, Ints, Mask
from specs.facts.lookups import answers
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import chosen, positions
from specs.facts.tenures import Tenures
from specs.vocabulary import Kind, Outcome


def set_anew(rows: Rows) -> Ints:
    """How often, when each row began, its incarnation had looked up its stored offset, or reported a correction.

    A look-up that failed sets nothing. What names no incarnation counts for each one that its client has on the lane.
    """
    failed = rows.ended_as(Outcome.REFUSED) & (rows.shared(answers) == NONE)
    looks = rows.are(Kind.FETCH_OFFSET) & ~failed & (rows.end < NEVER)
    moment = np.where(looks, rows.end, rows.begin)
    sets = (looks | (rows.are(Kind.COMMIT) & rows.correction)) & (rows.group != NO_TEXT)
    own, clients, named = rows.incarnation, rows.lane_client, rows.names_incarnation
    found = Line(own, moment, positions(sets & named)).count_before(own, rows.begin)
    return found + Line(clients, moment, positions(sets & ~named)).count_before(clients, rows.begin)


class Corrections:
    """Of the tenures of some rows, as these begin. highest: of each the highest offset that was told, else -1."""

    def __init__(self, rows: Rows, where: Ints) -> None:
        self.rows, self.where = rows, where
        tenures, begin = rows.shared(Tenures), rows.begin
        self._tenure, self._client = tenures.number, rows.lane_client
        self._since = chosen(begin, tenures.add[where], NONE)
        told = rows.are(Kind.COMMIT) & rows.correction & tenures.named
        pulls = rows.told_ahead
        self._commits = Line(self._tenure, begin, positions(told))
        self._pulls = Line(self._client, rows.end, pulls)
        known = self._commits.count_before(self._tenure[where], begin[where])
        known += self._pulls.count_before(self._client[where], begin[where])
        self.highest = np.full(len(where), -1, np.int64)
        for index in positions(known > 0).tolist():
            self.highest[index] = rows.value[self.before(index)].max(initial=-1)

    def before(self, index: int) -> Ints:
        """All that were told to the tenure of one of these rows."""
        row = int(self.where[index])
        now, since = int(self.rows.begin[row]), int(self._since[index])
        commits = self._commits.within(int(self._tenure[row]), NONE, now)
        return np.append(commits, self._pulls.within(int(self._client[row]), since, now))

    def had_before(self, index: Ints, call: Ints) -> Mask:
        """Of these rows and calls: was the call's message delivered before the tenure was told to go on beyond it?"""
        found = np.ones(len(index), np.bool_)
        offset, begin = self.rows.offset, self.rows.begin
        for at in positions(offset[call] < self.highest[index]).tolist():
            told = self.before(int(index[at]))
            beyond = told[self.rows.value[told] > offset[call[at]]]
            found[at] = begin[call[at]] < begin[beyond].min()
        return found
