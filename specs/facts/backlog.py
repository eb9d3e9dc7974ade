"""What lies before groups: messages of a queue that they may have to finish, and from when on each is known.

A message is *known* to lie at an offset for a group after a send that was acknowledged with it ended
(`specs.facts.sends`), or a delivery of it to the group began. Where several groups read one queue, a send speaks for a
group only if the group was seen before all groups seen so far had finished that message.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.finished import Finished
from specs.facts.segments import Peaks, chosen, dense, distinct, first_above, pairs, positions
from specs.facts.sends import Sends
from specs.vocabulary import Kind


class Backlog:
    """The messages before some lanes, each asked about from one offset on and below another.

    lane, low, high: equally long arrays of these questions, as long as the answers. start, stop: of each the places of
    its messages, start..stop-1. offset, message: of each place; message: its number in `Finished`, or NOWHERE. seen_by:
    kinds of rows by which a group is seen, beside those that begin and end its work.
    """

    def __init__(
        self, finished: Finished, lane: Ints, low: Ints, high: Ints, *seen_by: Kind
    ) -> None:
        self.rows, self.finished, self._seen_by = finished.rows, finished, seen_by
        self.sends = self.rows.shared(Sends)
        self._queue_of = np.zeros(int(self.rows.lane.max(initial=0)) + 1, np.int64)
        self._queue_of[self.rows.lane] = self.rows.queue
        lanes = distinct(lane)
        number = np.searchsorted(lanes, lane)
        lowest, highest = np.full(len(lanes), NEVER), np.full(len(lanes), NONE)
        np.minimum.at(lowest, number, low)
        np.maximum.at(highest, number, high)
        sent = self.sends.between(self._queue_of[lanes], lowest, highest)
        of, place = np.concatenate(
            [np.zeros((2, 0), np.int64), *(np.stack(each) for each in pairs(*sent))], axis=1
        )
        mine = positions(np.isin(finished.lane, lanes))
        self.lane = np.append(lanes[of], finished.lane[mine])
        self.offset = np.append(self.rows.offset[self.sends.first[place]], finished.offset[mine])
        same, count = dense(self.lane, self.offset)
        self.sent, self.message = np.full((2, count), NOWHERE, np.int64)
        self.sent[same[: len(of)]], self.message[same[len(of) :]] = place, mine
        at = np.zeros(count, np.int64)
        at[same] = np.arange(len(same))
        self.lane, self.offset = self.lane[at], self.offset[at]
        self.start, self.stop = (
            first_above(self.lane, self.offset, lane, each - 1) for each in (low, high)
        )
        self._late = Peaks(chosen(finished.moment, self.message, NEVER))

    def first(
        self, moment: Ints, fits: Callable[[Ints, Ints], Mask], stop: Ints | None = None
    ) -> Ints:
        """Of each question the first place that nobody had finished before the moment, and that fits; or NOWHERE.

        fits: of these questions (by index), does this place of each? stop: another end than that of the questions.
        """
        stop = self.stop if stop is None else stop
        return self._late.first_fitting(self.start, stop, moment, fits)

    @cached_property
    def _known(self) -> Peaks:
        rows = self.rows
        call = self.finished.begun.first_after(self.message, np.full(len(self.message), NONE))
        sent = chosen(rows.end, chosen(self.sends.first, self.sent, NOWHERE), NEVER)
        return Peaks(-np.minimum(chosen(rows.begin, call, NEVER), sent))

    def holds(self, start: Ints, moment: Ints) -> Mask:
        """Is any message known, before the moment, from the place `start` on and before each question's end?"""
        found: Mask = self._known.first_reaching(start, self.stop, 1 - moment) != NOWHERE
        return found

    def place_of(self, lane: Ints, offset: Ints) -> Ints:
        """The first place of each lane with that offset, or a higher one."""
        return first_above(self.lane, self.offset, lane, offset - 1)

    def shown(self, place: Ints, moment: Ints) -> Ints:
        """What shows, before the moment, that a message lies at each place: its last delivery since an operator moved
        the lane; or else its last send that speaks for the group; NOWHERE without either."""
        call = self.finished.held(self.message[place], moment)
        unheld = positions(call == NOWHERE)
        call[unheld] = self._sent_before(place[unheld], moment[unheld])
        return call

    def _sent_before(self, place: Ints, moment: Ints) -> Ints:
        send = self.sends.last_before(self.sent[place], moment)
        some = positions(send != NOWHERE)
        send[some[self._had_by_others(place[some], self.rows.end[send[some]])]] = NOWHERE
        return send

    def _had_by_others(self, place: Ints, sent_at: Ints) -> Mask:
        """Had all groups seen so far finished the message before the lane's group was seen, and after it was sent?"""
        turns, head, turn, seen = self._turns
        lane, offset = self.lane[place], self.offset[place]
        last, before = turn[lane], head[self._queue_of[lane]]
        found, over = np.zeros(len(place), np.bool_), np.full(len(place), NONE, np.int64)
        while (going := before < last).any():
            number = self.finished.number(turns[before], offset)
            over = np.maximum(over, chosen(self.finished.moment, number, NEVER))
            before = before + going
            then = seen[turns[before]]
            found |= going & (sent_at < then) & (over < then)
        return found

    @cached_property
    def _turns(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The lanes that are seen, by queue and when; of each queue where its first one is, of each lane where it is
        and when it is seen at first."""
        rows, seen = self.rows, np.full(len(self._queue_of), NEVER, np.int64)
        begun = rows.of(Kind.DELIVER, Kind.ADD, Kind.DROP, Kind.RESET, *self._seen_by)
        np.minimum.at(seen, rows.lane[begun], rows.begin[begun])
        ended = rows.of(Kind.FETCH_OFFSET, *self.finished.kinds)
        np.minimum.at(seen, rows.lane[ended], rows.end[ended])
        turns = positions(seen < NEVER)
        turns = turns[np.lexsort((seen[turns], self._queue_of[turns]))]
        turn = np.full(len(seen), NOWHERE, np.int64)
        turn[turns] = np.arange(len(turns))
        head = np.full(int(rows.queue.max(initial=0)) + 1, NOWHERE, np.int64)
        head[self._queue_of[turns[::-1]]] = turn[turns[::-1]]
        return turns, head, turn, seen
