"""Tries: how often a tenure was given a message, and from when on that can't be counted any more.

The counter of a message lives in the client and is counted in place: within one stand (`specs.facts.tenures`), and on
original topics, as a copy in a retry topic or among the dead letters was stored with a counter of its own.

A delivery's *try before* is the last one of its message in its stand, where that put the message back; that of a dead
letter also where it is of the last call of the stand so far. A try *failed to be given up* where a dead letter that
followed it was not acknowledged; one that names no incarnation may be of any of its client's.

A manual ROLLBACK replays without counting: from its end on nothing is counted in its stand. So does what may be one (a
ROLLBACK of which nobody knows the mode, from its end on; a call of which nobody saw the result, nor says that it was in
auto mode, from its begin on), where the next call begins no further.
"""

from functools import cached_property

import numpy as np

from specs.facts.calls import Calls, may_be_by_hand, may_put_back_unseen_of
from specs.facts.columns import NEVER, NOWHERE, Ints, Mask
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import chosen, dense, positions
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, RETRY_PREFIX, Kind, Outcome


class Tries:
    """at: the deliveries that are counted; letters: the dead letters of what was tried."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.calls = rows, rows.shared(Calls)
        self.stand, self.call = self.calls.tenures.stand, self.calls.call_of
        nameless = rows.are(Kind.DEAD_LETTER) & ~self.calls.tenures.named
        self._nameless = positions(nameless & (rows.offset >= 0))
        counts = ~(rows.starts_with("topic", RETRY_PREFIX) | rows.starts_with("topic", DLQ_PREFIX))
        self.at = self.calls.at[counts[self.calls.at]]
        letters = positions(self.calls.letters & counts)
        self.letters = letters[self.before[letters] != NOWHERE]

    @cached_property
    def before(self) -> Ints:
        """Of each row that is a delivery or a dead letter the try before; NOWHERE where there is none."""
        rows, message = self.rows, self.calls.message
        where = positions(message != NOWHERE)
        last = self.calls.deliveries.last_before(message[where], rows.begin[where])
        letter = positions(rows.are(Kind.DEAD_LETTER)[where])
        newest = self._calls.last_before(self.stand[where[letter]], rows.begin[where[letter]])
        leads = self.calls.puts_back[last]
        leads[letter] |= self.call[last[letter]] == self.call[newest]
        found = np.full(rows.size, NOWHERE, np.int64)
        found[where] = np.where(leads, last, NOWHERE)
        return found

    @cached_property
    def limit(self) -> Ints:
        return self.rows.config("max_reconsume_times", np.arange(self.rows.size))

    @cached_property
    def exhausted(self) -> Mask:
        """Of each delivery: was the message delivered for the last time allowed, in vain?"""
        times = self.rows.number("reconsume_times")
        spent = (self.limit >= 0) & (times >= self.limit)
        found: Mask = spent & self.rows.ended_as(*LISTENER_SUSPENDS)
        return found

    def failed_to_be_given_up(self, tries: Ints, until: Ints) -> Mask:
        """Of each of these tries: had a dead letter of it failed that began before the moment?"""
        found: Mask = self._failed_at[tries] < until
        return found

    def call_failed_to_be_given_up(self, tries: Ints, until: Ints) -> Mask:
        """Likewise, a dead letter of any message of its call."""
        first = np.full(len(self.calls.first), NEVER, np.int64)
        np.minimum.at(first, self.calls.number, self._failed_at[self.calls.at])
        found: Mask = first[self.call[tries]] < until
        return found

    @cached_property
    def _failed_at(self) -> Ints:
        """Of each delivery when the first dead letter began that failed and may be of it; NEVER without one."""
        rows, failed = self.rows, ~self.rows.ended_as(Outcome.OK)
        named, nameless = (each[failed[each]] for each in (self.letters, self._nameless))
        found = np.full(rows.size, NEVER, np.int64)
        np.minimum.at(found, self.before[named], rows.begin[named])
        if len(nameless):
            mine = dense(rows.lane_client, rows.offset)[0]
            first = Line(mine, rows.begin, nameless).first_after(mine, rows.begin)
            found = np.minimum(found, chosen(rows.begin, first, NEVER))
        return found

    @cached_property
    def counted_until(self) -> Ints:
        """Of each row the moment from which on nothing is counted in its stand."""
        rows, stand, calls = self.rows, self.stand, self.calls
        manual = calls.puts_back & rows.ended_as(Outcome.ROLLBACK)
        by_hand = may_be_by_hand(rows) & rows.ended_as(Outcome.ROLLBACK)
        found = np.full(int(stand.max(initial=0)) + 1, NEVER, np.int64)
        mine = np.zeros(rows.size, np.bool_)
        mine[calls.at] = True
        sure = positions(mine & manual & (rows.end < NEVER))
        np.minimum.at(found, stand[sure], rows.end[sure] + 1)
        for unsure, since in (
            (by_hand & ~manual & (rows.end < NEVER), rows.end),
            (may_put_back_unseen_of(rows), rows.begin),
        ):
            where = positions(mine & unsure)
            then = self._calls.first_after(stand[where], since[where])
            back = (then != NOWHERE) & (rows.offset[then] <= rows.offset[where])
            np.minimum.at(found, stand[where[back]], rows.begin[then[back]])
        return found[stand]

    @cached_property
    def _calls(self) -> Line:
        return Line(self.stand, self.rows.begin, self.calls.first)

    def is_whole(self, *, begun: bool = False) -> Mask:
        """Of each delivery: is all of its call in the history?

        In a closed world nothing is cut off; a call that is full, or of a tenure that was seen to begin, lacks nothing.
        begun: nor does one that another call of its stand goes before.
        """
        rows, calls = self.rows, self.calls
        size = np.bincount(calls.number, minlength=len(calls.first))
        batch = rows.config("batch", calls.first)
        whole = rows.closed_world(calls.first) | (batch == 1) | (size >= batch)
        whole |= calls.tenures.add[calls.first] != NOWHERE
        if begun:
            whole |= calls.follows
        found = np.zeros(rows.size, np.bool_)
        found[calls.at] = whole[calls.number]
        return found

    def all_exhausted(self) -> Mask:
        """Of each delivery: is it of a call that is whole, and of which each message had its last try in vain?"""
        calls = self.calls
        size = np.bincount(calls.number, minlength=len(calls.first))
        vain = np.bincount(calls.number, self.exhausted[calls.at], len(calls.first))
        found = np.zeros(self.rows.size, np.bool_)
        found[calls.at] = (size == vain)[calls.number]
        return found & self.is_whole()
