"""What an incarnation has given up, and whether it comes again with others of its batch that have to.

A message is *given up* in a stand (`specs.facts.tenures`) from the end of the first dead letter of it on that was
acknowledged there: until it has come again, and a dead letter of it that began after that has failed. A dead letter
that was stored weakly (codes 10 to 12: not flushed, or not copied, in time) may be lost with its broker. A client may
take it for sent or send it again, so that it counts neither as acknowledged nor as failed.

A call of several messages is put back as a whole. So a message that was given up comes again, and rightly, as long as
another one of its last call has to: one that was not given up after that call, and has not come again since in an
earlier call than this one. One row with a result tells how all of the call ended.

In manual mode a ROLLBACK replays what was given up as well: nothing counts in a stand once a call or a dead letter in
manual mode, or what may be a manual ROLLBACK, has ended, or a call has begun of which nobody saw the result, nor says
that it was in auto mode.
"""

import numpy as np

from specs.facts.calls import Calls, may_be_by_hand, may_put_back_unseen_of
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import chosen, pairs, positions
from specs.facts.stored import STORED_WEAKLY
from specs.facts.tries import Tries
from specs.vocabulary import LISTENER_RESULTS, CommitMode, Outcome


class GivenUp:
    """letters: the dead letters that ended where they count; safe: those that were acknowledged, and not weakly."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.calls = rows, rows.shared(Calls)
        self.message, self.stand = self.calls.message, self.calls.tenures.stand
        self.by_hand = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.MANUAL)
        letters = positions(self.calls.letters & (rows.end < NEVER))
        letters = letters[self.calls.tenures.stands_until_end(letters)]
        self._manual_from = self._manual()
        self.letters = letters[~self.is_manual(letters, rows.end[letters] + 1)]
        acknowledged = rows.ended_as(Outcome.OK)[self.letters]
        self.safe = self.letters[self.is_safe[self.letters]]
        self._safe = Line(self.message, rows.end, self.safe)
        self._ends = Line(self.message, rows.end, self.letters)
        vain = self.letters[~acknowledged]
        again = self.last_delivery(vain)
        arrived = Line(self.message, rows.end, self.letters[acknowledged])
        before = arrived.last_before(self.message[vain], rows.end[vain])
        forgotten = (
            (again != NOWHERE) & (before != NOWHERE) & (rows.end[before] < rows.begin[again])
        )
        self._in_vain = Line(self.message, rows.end, vain[forgotten])

    @property
    def is_safe(self) -> Mask:
        """Of each row that is a dead letter: was it answered so that nobody may send it again?"""
        weak = np.isin(self.rows.number("code"), STORED_WEAKLY)
        found: Mask = self.rows.ended_as(Outcome.OK) & ~weak
        return found

    def _manual(self) -> Ints:
        """Of each stand the moment from which on nothing counts."""
        rows, at = self.rows, self.calls.at
        rolled_back = rows.ended_as(Outcome.ROLLBACK) & may_be_by_hand(rows)
        is_call = (self.by_hand | rolled_back) & (self.calls.call_of != NOWHERE)
        ended = positions((is_call | (self.calls.letters & self.by_hand)) & (rows.end < NEVER))
        unseen = at[may_put_back_unseen_of(rows)[at]]
        found = np.full(int(self.stand.max(initial=0)) + 1, NEVER, np.int64)
        np.minimum.at(found, self.stand[ended], rows.end[ended])
        np.minimum.at(found, self.stand[unseen], rows.begin[unseen])
        return found

    def is_manual(self, where: Ints, moment: Ints) -> Mask:
        """May the stand of each of these rows have been in manual mode before the moment?"""
        found: Mask = self._manual_from[self.stand[where]] < moment
        return found

    def letter(self, where: Ints, moment: Ints) -> Ints:
        """The dead letter by which the message of each of these rows is given up at a moment; NOWHERE without one."""
        message, end = self.message[where], self.rows.end
        since = chosen(end, self._in_vain.last_before(message, moment), NONE)
        found = self._safe.first_after(message, since)
        return np.where(chosen(end, found, NEVER) < moment, found, NOWHERE)

    def last_delivery(self, where: Ints) -> Ints:
        """The last delivery before of the message of each of these rows."""
        return self.calls.deliveries.last_before(self.message[where], self.rows.begin[where])

    def same_until(self, where: Ints, later: Ints) -> Mask:
        """Did no dead letter of its message end between each of these rows and a later one?"""
        message, begin = self.message[later], self.rows.begin
        ended = self._ends.count_before(message, begin[later])
        found: Mask = self._ends.count_before(message, begin[where]) == ended
        return found

    def may_come(self, where: Ints) -> Mask:
        """May each of these deliveries come again because of others of the last call of its message?

        Also where that call is not in the history, or not as a whole.
        """
        rows, calls = self.rows, self.calls
        before = self.last_delivery(where)
        call, number = calls.call_of[before], calls.number
        size = len(calls.first) + 1  # one more, where there is none before
        told = np.bincount(number, rows.ended_as(*LISTENER_RESULTS)[calls.at], size) > 0
        told &= np.bincount(number, calls.puts_back[calls.at], size) == 0
        finished: Mask = told[call]
        found: Mask = (before == NOWHERE) | (
            ~finished & ~rows.shared(Tries).is_whole(begun=True)[before]
        )
        at = calls.at[np.argsort(number, kind="stable")]
        of = calls.call_of[at]
        start, stop = np.searchsorted(of, call, "left"), np.searchsorted(of, call, "right")
        for index, place in pairs(start, np.where(found | finished, start, stop)):
            other, mine = at[place], where[index]
            letter = self.letter(other, rows.begin[mine])
            given_up = rows.begin[letter] > rows.end[other]
            again = self.calls.deliveries.first_after(self.message[other], rows.begin[other])
            has_to = chosen(calls.call_of, again, NEVER) >= calls.call_of[mine]
            has_to &= (self.message[other] != self.message[mine]) & ~(
                given_up & (letter != NOWHERE)
            )
            found[index[has_to]] = True
        return found
