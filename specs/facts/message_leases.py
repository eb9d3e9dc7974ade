"""Leases of messages, as RECEIVE rows show them, and which certainly live at which moment.

A message is handed out somewhere between the question and the answer, so its lease lasts at least until the question's
begin plus the lease: `lease_until_us` of the row, moved by each renewal that was answered. It ends sooner by whatever
may have acknowledged or released the message, under whatever lease: a server that does not fence takes a late request
of a former holder for the present one's, also one that is on its way while the message is finished, or handed out. One
that was refused changed nothing. And it may end with the holder's connection: where the holder died, left or stood
still since, or anything was injected, nothing is certain.

A request that names its message by id alone speaks of the offset that was handed out with that id, where that is
certain (`specs.facts.message_names`). Else, and where it names nothing, it may speak of any message of the lane.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.leases import over_us
from specs.facts.message_names import may_be_any, offsets
from specs.facts.moments import Line
from specs.facts.presence import brokers_died, died_since, faulty_since, left_since, paused_since
from specs.facts.requests import applied_until
from specs.facts.rows import Rows
from specs.facts.segments import chosen, dense, positions
from specs.vocabulary import Kind, Outcome

LEASE_COLUMNS = ("lease_id", "lease_until_us", "message_id", "queue_offset", "reconsume_times")
OF_LEASES = (Kind.RECEIVE, Kind.ACK, Kind.RELEASE, Kind.RENEW)


def may_be_cut(rows: Rows, handed: Ints, now: Ints) -> Mask:
    """May the lease of each hand-out have ended by now with its holder's connection, or with the server?"""
    since_us = rows.started[handed] - rows.clocks_us(handed)
    return (
        brokers_died(rows, handed, now)
        | died_since(rows, handed, now)
        | left_since(rows, handed, now)
        | paused_since(rows, handed, since_us, now)
        | faulty_since(rows, handed, since_us, now)
    )


def may_be_gone(rows: Rows, handed: int, now: int) -> bool:
    """May the message that was handed out be gone by now: did the server die, or remove it, or was the lane reset?"""
    context, queue = rows.context_of(handed), rows.queue_of(handed)
    began, epoch = int(rows.begin[handed]), int(rows.number("broker_epoch")[handed])
    return (
        context.broker_died_since(queue.broker, began, epoch, now)
        or int(rows.offset[handed]) < context.kept_from(queue, now)
        or context.resets.get(rows.lane_of(handed), NEVER) <= now
    )


class MessageLeases:
    """The leases of messages; each goes by the position of its hand-out. Columns have a value for every row.

    message: the number of the message that a row speaks of; NOWHERE where that is not certain. handed: the hand-outs
    whose answers were seen, by message and answer; line: the same. acks: acknowledgements that were answered, likewise.
    before: of each hand-out the one before, unless an acknowledgement was answered since; NOWHERE: none. over_from:
    since when (seq) a request may have ended the lease. applied_us: until when, by any clock, one may be applied.
    renewals: by message; of_any: requests that may be about any message, by lane; both without what was refused.
    """

    def __init__(self, rows: Rows, counts_from: Ints | None = None) -> None:
        """counts_from: since when (seq) each request counts of leases that it found answered; its begin by default."""
        self.rows = rows
        counts_from = rows.begin if counts_from is None else counts_from
        offset, until_us = rows.shared(offsets), rows.number("lease_until_us")
        about = rows.are(*OF_LEASES) & (offset != NONE) & (rows.group != NO_TEXT)
        answered = about & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
        renewals, effective = rows.are(Kind.RENEW), ~rows.ended_as(Outcome.REFUSED)
        self.message = np.full(rows.size, NOWHERE, np.int64)
        self.message[about] = dense(rows.lane[about], offset[about])[0]
        applied_us = np.where(effective, rows.shared(applied_until), NONE)
        self.applied_us = applied_us + rows.clocks_us(np.arange(rows.size))
        handed = positions(answered & rows.are(Kind.RECEIVE))
        self.handed = handed[np.lexsort((rows.end[handed], self.message[handed]))]
        self.line = Line(self.message, rows.end, self.handed)
        self.acks = Line(self.message, rows.end, positions(answered & rows.are(Kind.ACK)))
        self.before = self._before()
        of_any = rows.shared(may_be_any) & rows.are(*OF_LEASES) & (rows.group != NO_TEXT)
        self.of_any = Line(rows.lane, rows.begin, positions(of_any & effective))
        ends = positions(about & effective & rows.are(Kind.ACK, Kind.RELEASE))
        self.over_from = self._over_from(ends, counts_from)

        # Who hands out and names no end lends for ever; of a renewal that names none nobody knows that it prolongs.
        untold_us = np.where(renewals, rows.started, NEVER)
        self._told_us = np.where(until_us == NONE, untold_us, until_us)
        self.renewals = Line(self.message, counts_from, positions(about & effective & renewals))
        prolongs = positions(answered & renewals & (until_us != NONE))
        self._lease, count = dense(self.message, rows.text("lease_id"))
        self._prolonged = Line(self._lease, rows.end, prolongs)
        self._longest_us = np.full(count, NONE, np.int64)  # by lease_id, as renewals tell
        np.maximum.at(self._longest_us, self._lease[prolongs], until_us[prolongs])

    def _before(self) -> Ints:
        rows, message = self.rows, self.message[self.handed]
        found = np.full(rows.size, NOWHERE, np.int64)
        before = self.line.last_before(message, rows.end[self.handed])
        ack = self.acks.last_before(message, rows.end[self.handed])
        finished = chosen(rows.end, ack, NONE) > chosen(rows.end, before, NONE)
        found[self.handed] = np.where(finished, NOWHERE, before)
        return found

    def _over_from(self, ends: Ints, counts_from: Ints) -> Ints:
        """ends: the requests that may end leases of their message."""
        rows, handed = self.rows, self.handed
        found = np.full(rows.size, NEVER, np.int64)
        ever = np.full(len(handed), NEVER, np.int64)
        for line, since, key, until in (
            (Line(self.message, counts_from, ends), counts_from, self.message, ever),
            (Line(self.message, rows.begin, ends), rows.begin, self.message, rows.end[handed]),
            (self.of_any, rows.begin, rows.lane, ever),
        ):
            least_us = rows.started[handed]
            first = line.first_reaching(key[handed], until, self.applied_us, least_us)
            found[handed] = np.minimum(found[handed], chosen(since, first, NEVER))
        return found

    def again(self) -> tuple[Ints, Ints]:
        """Hand-outs of messages that were handed out before, up to a step of a wall clock; and the ones before."""
        again = self.handed[self.before[self.handed] != NOWHERE]
        again = again[self.rows.end[again] < self.rows.clock_stepped(again)]
        return again, self.before[again]

    def until_us(self, lease: Ints, now: Ints) -> Ints:
        """Until when (µs) each lease lasts at least, by what was asked and answered before now.

        By its last renewal that was answered, or by its hand-out; and no longer than by any renewal that may have come
        after that, as of two that overlap either may be the later one.
        """
        rows = self.rows
        last = self._prolonged.last_before(self._lease[lease], now)
        last[chosen(rows.end, last, NONE) < rows.end[lease]] = NOWHERE
        since_us = chosen(rows.started, last, NONE)
        found = self._told_us[np.where(last == NOWHERE, lease, last)]
        index, other = self.renewals.between(
            self.message[lease],
            rows.begin[lease],
            now,
            lambda index, other: self.applied_us[other] >= since_us[index],
        )
        np.minimum.at(found, index, self._told_us[other])
        return found

    def live(self, lease: Ints, other: Ints, now: Ints) -> Mask:
        """Does each lease certainly live, as of now, wherever between begin and end the other request was taken?

        Where it may have run out by the time that a renewal was answered, whoever had asked by then may have been
        handed the message meanwhile.
        """
        rows = self.rows
        found = self._in_time(lease, other, now) & (self.over_from[lease] >= now)
        found[found] = ~may_be_cut(rows, lease[found], now[found])
        since = np.maximum(rows.end[lease], rows.begin[other])
        index, renewal = self._prolonged.between(
            self._lease[lease], since, now, lambda index, _: found[index]
        )
        late = ~self._in_time(lease[index], renewal, rows.end[renewal])
        found[index[late]] = False
        return found

    def _in_time(self, lease: Ints, other: Ints, now: Ints) -> Mask:
        """Was each other request over while the lease lasted, by what was told before now?"""
        last_us = self.until_us(lease, now) - self.rows.clocks_us(lease) - MS
        found: Mask = over_us(self.rows, other) < last_us
        return found

    def together(
        self, key: Ints, at: Ints, fits: Callable[[Ints, Ints], Mask]
    ) -> tuple[Ints, Ints]:
        """Hand-outs of one key that fit: either was certainly made while the other's lease lived, whichever came later.

        key: of all rows. at: those that are asked about. The second one was answered later. Of one second the first
        ones lie together, the last answered one before the others.
        """
        rows = self.rows
        line = Line(key, rows.end, at[rows.end[at] < rows.clock_stepped(at)])
        longest_us = np.maximum(self._told_us[at], self._longest_us[self._lease[at]])
        last_us = longest_us - rows.clocks_us(at) - MS - 1
        last = line.last_within(key[at], rows.ended, last_us)
        until = np.minimum(self.over_from[at], chosen(rows.end, last, NONE) + 1)
        index, second = line.between(
            key[at],
            rows.end[at],
            until,
            lambda index, second: self._meet(at[index], second, fits(at[index], second)),
        )
        first = at[index]
        order = np.lexsort((-rows.end[first], rows.end[second], self.message[second]))
        return first[order], second[order]

    @cached_property
    def of_one_message(self) -> tuple[Ints, Ints]:
        """Hand-outs of one message of which either was certainly made while the other's lease lived."""
        return self.together(
            self.message, self.handed, lambda first, _: np.ones(len(first), np.bool_)
        )

    def _meet(self, first: Ints, second: Ints, found: Mask) -> Mask:
        now = self.rows.end[second]
        found[found] = self.live(first[found], second[found], now[found])
        either = positions(found & (self.rows.end[first] >= self.rows.begin[second]))
        found[either] = self.live(second[either], first[either], now[either])
        return found
