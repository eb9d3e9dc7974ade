"""What was put back and waits to come again: since when it is due, and what is left of it where a part has come.

A batch is due after the pause that its call asked for; where one of its messages was to be given up, not before the
dead letter has failed, and then the pause counts from the end of that send. As long as a dead letter is on its way,
nobody knows when; and nothing waits any more once one was acknowledged.

Where the next call begins with a message of the batch, what it leaves out is due when that call has ended well, or when
the batch was, or after its own pause, whichever comes last; unless a message is given up meanwhile.
"""

from dataclasses import dataclass

import numpy as np

from specs.facts.calls import Calls, may_be_by_hand, may_be_used_up, pause_ms
from specs.facts.columns import MS, NEVER, NO_TEXT, NOWHERE, Ints, Mask
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import Batches, chosen, distinct, is_first, positions
from specs.vocabulary import Kind, Outcome


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits, equally long arrays. call: after which; row: its delivery that ended last, which says for how long.

    Where a part has come again, that was in `call`, and row is the lowest that is left. part: the delivery before of
    what began that call, else NOWHERE. due_us, letter: as `PutBack.due` tells when the part came. rest, of: all
    deliveries that wait, and the index of what each is of.
    """

    call: Ints
    row: Ints
    part: Ints
    due_us: Ints
    letter: Ints
    rest: Ints
    of: Ints

    def has(self, message: Ints, rows: Ints) -> Ints:
        """What waits of the message of each of these rows, one for each index; NOWHERE where nothing does."""
        found = np.full(len(rows), NOWHERE, np.int64)
        same = (rows[self.of] != NOWHERE) & (message[self.rest] == message[rows[self.of]])
        found[self.of[same]] = self.rest[same]
        return found


class PutBack:
    """last: of each call the row that ended last."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.calls = rows, rows.shared(Calls)
        calls, tenures = self.calls, self.calls.tenures
        number, at = calls.number, calls.at
        self.last = np.zeros(len(calls.first), np.int64)
        order = np.argsort(rows.end[at], kind="stable")
        self.last[number[order]] = at[order]  # the last one that is written stays
        self._used_up = np.bincount(number, may_be_used_up(rows)[at], len(self.last)) > 0
        rollback = rows.ended_as(Outcome.ROLLBACK) & ~may_be_by_hand(rows)
        well = rows.ended_as(Outcome.SUCCESS, Outcome.COMMIT) | rollback
        self._well = np.bincount(number, ~(well & (rows.ended < NEVER))[at], len(self.last)) == 0
        letter = positions(calls.letters)
        newest = Line(tenures.stand, rows.begin, calls.first)
        of = np.full(rows.size, NOWHERE, np.int64)
        of[letter] = chosen(
            calls.call_of, newest.last_before(tenures.stand[letter], rows.begin[letter]), NOWHERE
        )
        letter = letter[rows.end[letter] > chosen(calls.over, of[letter], NEVER)]
        self._begun, self._ended, self._taken = (
            Line(of, rows.begin, letter),
            Line(of, rows.end, letter),
            Line(of, rows.end, letter[rows.ended_as(Outcome.OK)[letter]]),
        )

    def batches(self) -> Waiting:
        """All that was put back in tenures that were seen to begin, by somebody who is named."""
        rows, calls = self.rows, self.calls
        whole = calls.puts_back[self.last] & self._holds_on(np.arange(len(self.last)))
        whole &= (calls.tenures.add[calls.first] != NOWHERE) & (rows.ended[self.last] < NEVER)
        call = positions(whole & (rows.client[calls.first] != NO_TEXT))
        rest = calls.at[calls.puts_back[calls.at] & np.isin(calls.number, call)]
        none = np.full(len(call), NOWHERE, np.int64)
        of = np.searchsorted(call, calls.call_of[rest])
        return Waiting(call, self.last[call], none, none, none, rest, of)

    def _holds_on(self, call: Ints) -> Mask:
        """Does each tenure last until the call is over, and begin no other one by then?"""
        rows, tenures, last = self.rows, self.calls.tenures, self.last[call]
        drops = Line(tenures.number, rows.begin, rows.of(Kind.DROP))
        dropped = drops.count_before(tenures.number[last], rows.end[last]) > 0
        then = chosen(rows.begin, self.calls.then[call], NEVER)
        return tenures.stands_until_end(last) & ~dropped & (then > rows.end[last])

    def due(self, waiting: Waiting, index: Ints, moment: Ints) -> tuple[Ints, Ints]:
        """Since when each is due, in µs, as of a moment (NEVER: nobody knows); and the dead letter that failed."""
        rows, call, is_rest = self.rows, waiting.call[index], waiting.part[index] != NOWHERE
        begun = self._begun.count_before(call, moment)
        letter = self._ended.last_before(call, moment)
        known = (begun == self._ended.count_before(call, moment)) & (
            self._taken.count_before(call, moment) == 0
        )
        known &= (letter != NOWHERE) | ~self._used_up[call]
        since_us = rows.ended[np.where(letter == NOWHERE, self.last[call], letter)]
        known &= since_us < NEVER
        due_us = np.where(known, since_us + pause_ms(rows, self.last[call]) * MS, NEVER)
        rest_us = np.where(begun == 0, waiting.due_us[index], NEVER)
        return np.where(is_rest, rest_us, due_us), np.where(is_rest, waiting.letter[index], letter)

    def left(self, waiting: Waiting, seen: Ints) -> Waiting:
        """What is left where a part came again and that call ended well. seen: what each one's tenure did first."""
        rows, calls, call = self.rows, self.calls, waiting.call + 1
        index, part = np.arange(len(call)), waiting.has(calls.message, seen)
        due_us, letter = self.due(waiting, index, chosen(rows.begin, seen, NEVER))
        goes_on = (seen != NOWHERE) & (seen == calls.then[waiting.call]) & (part != NOWHERE)
        goes_on &= due_us < NEVER
        index = positions(goes_on)
        index = index[self._well[call[index]] & self._holds_on(call[index])]
        came = calls.deliveries.first_after(calls.message[waiting.rest], rows.begin[waiting.rest])
        stays = chosen(calls.call_of, came, NEVER) > call[waiting.of]
        stays &= np.isin(waiting.of, index)
        rest, of = waiting.rest[stays], waiting.of[stays]
        index = distinct(of)
        of = np.searchsorted(index, of)
        order = np.lexsort((rows.offset[rest], of))
        row = rest[order][is_first(of[order])]
        asked_us = Batches(of).highest(rows.ended[rest] + pause_ms(rows, rest) * MS)
        over_us = rows.ended[self.last[call[index]]]
        due_us = np.maximum(due_us[index], np.maximum(over_us, asked_us))
        return Waiting(call[index], row, part[index], due_us, letter[index], rest, of)
