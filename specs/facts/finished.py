"""What each group of a queue had finished, and when; and what it may have finished where nobody told.

*Finished*: in auto mode when the call ended SUCCESS, COMMIT or ROLLBACK (auto mode acknowledges a ROLLBACK); in manual
mode when the same or a later call of the tenure (`specs.facts.tenures`) ends COMMIT (an auto call that acknowledges
does the same: the client commits all that it has taken). In both modes only while the tenure was not dropped before the
end. An acknowledged dead letter finishes a message in auto mode, in manual mode once a COMMIT covers it. A manual
ROLLBACK puts all that was taken and not committed back, and so does a reset of the lane. A dead letter that does not
say its mode is of the mode of its client's last call of the message; one that names no incarnation finishes its
message in either, and so does a send-back. What anybody of the group finished stays finished.

*In doubt*: a message that was suspended with its counter at the limit may have been given up where nobody recorded it
(`specs.facts.dead_letters.may_be_untold` says where), until who may have given it up has it again. It is neither owed
nor finished. What so gives up in auto mode commits what the tenure has taken, of which nobody knows either then; what
may have been given up in manual mode is only taken, until an acknowledging call covers it.
"""

from functools import cached_property

import numpy as np

from specs.facts.calls import acknowledged, may_be_used_up
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import chosen, dense, first_above, positions
from specs.facts.tenures import Tenures
from specs.vocabulary import CommitMode, Kind, Outcome


class Finished:
    """Messages are numbered by lane and offset: those that were delivered to a named incarnation, or given up.

    letters: the kinds of rows that give a message up. message: of each row its number, NOWHERE for none. lane, offset:
    of each message.
    """

    def __init__(self, rows: Rows, *letters: Kind) -> None:
        self.rows, self.tenures, self.kinds = rows, rows.shared(Tenures), letters
        told = (rows.group != NO_TEXT) & (rows.offset != NONE)
        self.calls = told & self.tenures.named & rows.are(Kind.DELIVER)
        given_up = told & rows.are(*letters) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
        where = positions(self.calls | given_up)
        number, count = dense(rows.lane[where], rows.offset[where])
        self.message = np.full(rows.size, NOWHERE, np.int64)
        self.message[where] = number
        self.lane, self.offset = np.zeros((2, count), np.int64)
        self.lane[number], self.offset[number] = rows.lane[where], rows.offset[where]
        self.begun = Line(self.message, rows.begin, positions(self.calls))
        self._resets = Line(rows.lane, rows.begin, rows.of(Kind.RESET))
        self._drops = Line(
            rows.incarnation, rows.begin, positions(rows.are(Kind.DROP) & self.tenures.named)
        )
        mode = rows.text("commit_mode")
        self._manual = mode == rows.code("commit_mode", CommitMode.MANUAL)
        alive = positions(self.calls & (rows.end < NEVER))
        self._alive = alive[rows.end[alive] < chosen(rows.begin, self.drop(alive), NEVER)]
        letter = positions(given_up)
        alone = ~self.tenures.named[letter] | rows.are(Kind.SEND_BACK)[letter]
        self._alone, letter = letter[alone], letter[~alone]
        by_hand = self._by_hand(letter)
        manual = self._manual[self._alive]
        well = acknowledged(rows)[self._alive]
        taken = manual & rows.ended_as(Outcome.SUCCESS)[self._alive]
        self._covers = np.append(self._alive[well], letter[~by_hand])
        self._taken = np.append(self._alive[taken], letter[by_hand])
        self._rolled_back = self._alive[manual & rows.ended_as(Outcome.ROLLBACK)[self._alive]]

    def drop(self, where: Ints) -> Ints:
        """The first DROP of the tenure of each of these rows; NOWHERE without one."""
        since = chosen(self.rows.begin, self.tenures.add[where], NONE)
        return self._drops.first_after(self.rows.incarnation[where], since)

    def drop_of(self, call: Ints, moment: Ints) -> Ints:
        """The DROP, before the moment, because of which each call that ended well did not finish its message."""
        begin, well = self.rows.begin, (call != NOWHERE) & acknowledged(self.rows)[call]
        drop = np.where(well, self.drop(call), NOWHERE)
        return np.where(chosen(begin, drop, NEVER) < moment, drop, NOWHERE)

    def _by_hand(self, letter: Ints) -> Mask:
        """Which of these dead letters are in manual mode?"""
        rows, tenure = self.rows, self.tenures.number
        told = rows.text("commit_mode")[letter] != NO_TEXT
        found: Mask = self._manual[letter]
        if told.all():
            return found
        client, calls = dense(self.message, rows.client)[0], positions(self.calls)
        own = Line(client, rows.begin, calls).last_before(client[letter], rows.end[letter])
        own = np.where(self._since_reset(own, letter, rows.end[letter]), own, NOWHERE)
        newest = Line(tenure, rows.begin, calls).last_before(tenure[letter], rows.end[letter])
        last = np.where(own == NOWHERE, newest, own)
        found[~told] = (self._manual[last] & (last != NOWHERE))[~told]
        return found

    def _since_reset(self, call: Ints, of: Ints, moment: Ints) -> Mask:
        """Did each of these calls begin after the last reset, before the moment, of the lane of another row?"""
        lane = self.rows.lane[of]
        reset = chosen(self.rows.begin, self._resets.last_before(lane, moment), NONE)
        found: Mask = chosen(self.rows.begin, call, NONE) > reset
        return found

    def held(self, message: Ints, moment: Ints) -> Ints:
        """The last delivery of each message that began before the moment, and since an operator last moved the lane."""
        call = self.begun.last_before(message, moment)
        return np.where(self._since_reset(call, call, moment), call, NOWHERE)

    def number(self, lane: Ints, offset: Ints) -> Ints:
        """The messages at these places; NOWHERE of one that nobody was given."""
        place = first_above(self.lane, self.offset, lane, offset - 1)
        place = np.where(place < len(self.lane), place, NOWHERE)
        same = (chosen(self.lane, place, NOWHERE) == lane) & (
            chosen(self.offset, place, NONE) == offset
        )
        return np.where(same, place, NOWHERE)

    @cached_property
    def moment(self) -> Ints:
        """Of each message the seq at which the group had finished it; NEVER of one that it has not."""
        rows, covers, taken = self.rows, self._covers, self._taken
        found = np.full(len(self.lane), NEVER, np.int64)
        for ends in (covers, self._alone):
            np.minimum.at(found, self.message[ends], rows.end[ends])
        covered = self._first_of(covers, taken)
        some = covered < self._put_back(taken)
        np.minimum.at(found, self.message[taken[some]], covered[some])
        return found

    def _first_of(self, ends: Ints, after: Ints) -> Ints:
        """When the first of these rows ended in the tenure of another one, after that had ended; or NEVER."""
        tenure, end = self.tenures.number, self.rows.end
        return chosen(end, Line(tenure, end, ends).first_after(tenure[after], end[after]), NEVER)

    def _put_back(self, taken: Ints) -> Ints:
        """When what each of these ends took was put back, at first after; or NEVER."""
        rows = self.rows
        reset = self._resets.first_after(rows.lane[taken], rows.end[taken])
        return np.minimum(
            self._first_of(self._rolled_back, taken), chosen(rows.begin, reset, NEVER)
        )

    def worked_on(self, message: Ints, moment: Ints) -> Mask:
        """Did the last call of each message end well, before the moment, though its tenure had been dropped?"""
        end, line = self.rows.end, self._after_drop
        last = chosen(end, line.last_before(message, moment), NONE)
        begun = chosen(self.rows.begin, self.begun.last_before(message, moment), NEVER)
        found: Mask = last >= begun  # one that takes no time ends where it begins
        return found

    @cached_property
    def _after_drop(self) -> Line:
        well = self.calls & acknowledged(self.rows) & (self.rows.end < NEVER)
        dropped = np.setdiff1d(positions(well), self._alive)
        return Line(self.message, self.rows.end, dropped)

    def in_doubt(self, message: Ints, moment: Ints) -> Mask:
        """May each message have been given up, before the moment, by somebody who does not have it again?"""
        if not len(message):  # mostly nobody asks
            return np.zeros(0, np.bool_)
        line, until = self._doubts
        found: Mask = (
            line.last_before_with(
                message, moment, lambda index, doubt: until[doubt] >= moment[index]
            )
            != NOWHERE
        )
        return found

    @cached_property
    def _doubts(self) -> tuple[Line, Ints]:
        """Since when messages are in doubt, and until when each time."""
        rows, end = self.rows, self.rows.end
        vain = positions(self.calls & may_be_used_up(rows) & (end < NEVER))
        vain = vain[self.held(self.message[vain], end[vain] + 1) != NOWHERE]  # its own begin counts
        by_hand = self._manual[vain]
        auto, unsure = vain[~by_hand], vain[by_hand & np.isin(vain, self._alive)]
        gives_up = auto[np.isin(auto, self._alive) & (end[auto] <= self.moment[self.message[auto]])]
        covers = np.append(self._covers, gives_up)
        until = np.minimum(
            self._put_back(unsure), self._again(unsure, end[unsure], self.tenures.number)
        )
        covered = self._first_of(covers, unsure)
        some = covered < until
        # What was taken is in doubt anew whenever something may have been given up.
        taken, line = self._taken, Line(self.tenures.number, end, gives_up)
        until = np.minimum(self._first_of(self._covers, taken), self._put_back(taken))
        index, given_up = line.between(
            self.tenures.number[taken],
            end[taken],
            until,
            lambda index, _: np.ones(len(index), np.bool_),
        )
        row = np.concatenate([auto, unsure[some], taken[index]])
        since = np.concatenate([end[auto], covered[some], end[given_up]])
        known = self.held(self.message[row], since + 1) != NOWHERE
        row, since = row[known], since[known]
        reset = self._resets.first_after(rows.lane[row], since)
        until = np.minimum(
            self._again(row, since, rows.incarnation), chosen(rows.begin, reset, NEVER)
        )
        return Line(self.message[row], since, np.arange(len(row))), until

    def _again(self, where: Ints, since: Ints, of: Ints) -> Ints:
        """When the message of each of these rows was first delivered again to the same one, after a moment; or NEVER.

        of: of each row to whom.
        """
        call = self.begun.first_after_with(
            self.message[where], since, lambda index, call: of[call] == of[where[index]]
        )
        return chosen(self.rows.begin, call, NEVER)
