"""Calls of listeners: which deliveries are one call, what it did to its messages, and what is owed of them.

A *call* is the deliveries of one operation in one stand (`specs.facts.tenures`), one after the other; how its last row
ended says how it ended. It *puts back* its messages after SUSPEND, null, a throw, or a manual ROLLBACK.

Each message of a call that put back is *owed* from the next call of its stand on, once all of its own is over: until it
is delivered again, until its dead letter, begun after the call had ended, is acknowledged (one that names no
incarnation speaks for its client), or until nothing lies there any more (`specs.facts.gone`). A ROLLBACK takes back the
dead letters that were acknowledged before the next call. A message whose retries were used up, or whose counter nobody
tells though there is a limit, may have been given up where nobody saw it: it is owed only where a dead letter of it had
failed before the next call.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.gone import gone_from
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import (
    Timeline,
    by_time,
    chosen,
    dense,
    first_fitting,
    is_first,
    positions,
)
from specs.facts.tenures import TENURE_COLUMNS, TENURE_KINDS, Tenures
from specs.vocabulary import LISTENER_RESULTS, LISTENER_SUSPENDS, CommitMode, Kind, Outcome

CALL_KINDS = TENURE_KINDS | {Kind.DELIVER, Kind.DEAD_LETTER}
CALL_COLUMNS = (*TENURE_COLUMNS, "commit_mode", "op_id", "reconsume_times")

PAUSE_MS = (10, 30_000)
"""The shortest pause of a consumer, and the longest."""


def may_be_by_hand(rows: Rows) -> Mask:
    """Of each row: was it a call in manual mode, or one that ended and of which nobody says in which?"""
    mode = rows.text("commit_mode")
    manual = mode == rows.code("commit_mode", CommitMode.MANUAL)
    found: Mask = manual | ((mode == NO_TEXT) & rows.ended_as(*LISTENER_RESULTS))
    return found


def acknowledged(rows: Rows) -> Mask:
    """Of each row that is a call: does its result finish the message? In auto mode a ROLLBACK does so as well."""
    manual = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.MANUAL)
    in_auto = rows.ended_as(Outcome.SUCCESS, Outcome.ROLLBACK) & ~manual
    found: Mask = in_auto | rows.ended_as(Outcome.COMMIT)
    return found


def certainly_acknowledged(rows: Rows) -> Mask:
    """Likewise, in whatever mode it may have been."""
    in_auto = acknowledged(rows) & ~may_be_by_hand(rows)
    found: Mask = in_auto | rows.ended_as(Outcome.COMMIT)
    return found


def may_put_back_unseen_of(rows: Rows) -> Mask:
    """Of each row that is a call: did nobody see its result, nor say that it was in auto mode?"""
    in_auto = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.AUTO)
    found: Mask = ~rows.ended_as(*LISTENER_RESULTS) & ~in_auto
    return found


def may_be_given_up(rows: Rows) -> Mask:
    """Of each delivery: could it, by what is known of its counter, have been the last one allowed?"""
    limit = rows.config("max_reconsume_times", np.arange(rows.size))
    times = rows.number("reconsume_times")
    found: Mask = (limit >= 0) & ((times == NONE) | (times >= limit))
    return found


def may_be_used_up(rows: Rows) -> Mask:
    """Of each delivery: may it have been the last one allowed, and was it in vain?"""
    found: Mask = may_be_given_up(rows) & rows.ended_as(*LISTENER_SUSPENDS)
    return found


def puts_back(rows: Rows) -> Mask:
    """Of each row that is a delivery: does its end put the message back?"""
    manual = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.MANUAL)
    by_hand = rows.ended_as(Outcome.ROLLBACK) & manual
    found: Mask = rows.ended_as(*LISTENER_SUSPENDS) | by_hand
    return found


def pause_ms(rows: Rows, where: Ints) -> Ints:
    """The pause that these ended calls ask for, in ms; -1 and none at all mean the consumer's own."""
    asked = rows.number("suspend_ms")[where]
    return np.where(asked < 0, own_pause_ms(rows, where), np.clip(asked, *PAUSE_MS))


def own_pause_ms(rows: Rows, where: Ints) -> Ints:
    """The consumer's own pause, of these rows' runs."""
    return np.clip(rows.config("suspend_ms", where), *PAUSE_MS)


@dataclass(frozen=True, slots=True)
class Owed:
    """What is owed, equally long arrays: a message for each index.

    row: its delivery; batch: the number of the call that put it back. It is owed by who begins from `since` to `until`,
    both included. failed: its first dead letter that failed, or NOWHERE.
    """

    row: Ints
    batch: Ints
    since: Ints
    until: Ints
    failed: Ints

    def failed_by(self, rows: Rows, which: Ints, later: Ints) -> Ints:
        """Of these the dead letter that had failed when a later row began; NOWHERE where none had."""
        letter = self.failed[which]
        had = chosen(rows.end, letter, NEVER) < rows.begin[later]
        return np.where(had, letter, NOWHERE)


class Calls:
    """The calls of all stands, by stand and begin.

    at: the deliveries that are of a tenure; number: of each of these its call. first, last, stand: of each call.
    stands: of each row; another part of a tenure may stand for them.
    """

    def __init__(self, rows: Rows, stands: Ints | None = None) -> None:
        self.rows, self.tenures = rows, rows.shared(Tenures)
        self.stands = self.tenures.stand if stands is None else stands
        told = self.tenures.named & (rows.offset >= 0)
        self.letters = told & rows.are(Kind.DEAD_LETTER)
        self.at = positions(told & rows.are(Kind.DELIVER))
        stand = self.stands[self.at]
        order = by_time(stand, rows.begin[self.at])
        stand, op = stand[order], rows.number("op_id")[self.at][order]
        new = np.ones(len(order) + 1, np.bool_)
        new[1:-1] = (stand[1:] != stand[:-1]) | (op[1:] != op[:-1])
        self.number = np.empty(len(order), np.int64)
        self.number[order] = np.cumsum(new[:-1]) - 1
        self.first, self.last = self.at[order][new[:-1]], self.at[order][new[1:]]
        self.stand = self.stands[self.first]

    @cached_property
    def follows(self) -> Mask:
        """Of each call: is there one before it in its stand?"""
        found = np.zeros(len(self.first), np.bool_)
        found[1:] = self.stand[1:] == self.stand[:-1]
        return found

    @cached_property
    def then(self) -> Ints:
        """Of each call the first row of the next one of its stand; NOWHERE where there is none."""
        found = np.full(len(self.first), NOWHERE, np.int64)
        found[:-1] = np.where(self.follows[1:], self.first[1:], NOWHERE)
        return found

    @cached_property
    def over(self) -> Ints:
        """Of each call when its last row had ended."""
        found = np.full(len(self.first), NONE, np.int64)
        np.maximum.at(found, self.number, self.rows.end[self.at])
        return found

    @cached_property
    def by_begin(self) -> Timeline:
        """The calls of each stand, by the begin of their first row."""
        return Timeline(self.stand, self.rows.begin[self.first])

    def lowest_of(self, calls: Ints) -> Ints:
        """Of each of these calls its row with the lowest offset; of equal ones the first. calls: ascending."""
        return self._extreme_of(calls, self.rows.offset)

    def highest_of(self, calls: Ints) -> Ints:
        """Likewise, with the highest."""
        return self._extreme_of(calls, -self.rows.offset)

    def _extreme_of(self, calls: Ints, offset: Ints) -> Ints:
        mine = positions(np.isin(self.number, calls))
        order = mine[
            np.lexsort((self.rows.begin[self.at[mine]], offset[self.at[mine]], self.number[mine]))
        ]
        return self.at[order[is_first(self.number[order])]]

    @cached_property
    def call_of(self) -> Ints:
        """Of each row the number of its call; NOWHERE of one that is of none."""
        found = np.full(self.rows.size, NOWHERE, np.int64)
        found[self.at] = self.number
        return found

    @cached_property
    def puts_back(self) -> Mask:
        return puts_back(self.rows)

    @cached_property
    def message(self) -> Ints:
        """Of each delivery and dead letter a number of its stand and offset; NOWHERE of other rows."""
        found = np.full(self.rows.size, NOWHERE, np.int64)
        mine = np.concatenate([self.at, positions(self.letters)])
        found[mine] = dense(self.stands[mine], self.rows.offset[mine])[0]
        return found

    @cached_property
    def deliveries(self) -> Line:
        """The deliveries of each message, by begin."""
        return Line(self.message, self.rows.begin, self.at)

    def first_beyond(self, stand: Ints, offset: Ints, since: Ints, until: Ints) -> Ints:
        """The first delivery of each stand beyond an offset that begins from one moment to another, both included."""
        line = self._of_stands
        start, stop = line.between(stand, since, until + 1)
        offsets = self.rows.offset[self.at[line.order]]
        place = first_fitting(start, stop, lambda index, at: offsets[at] > offset[index])
        return chosen(self.at, chosen(line.order, place, NOWHERE), NOWHERE)

    def while_any(self, stand: Ints, since: Ints, until: Ints) -> Ints:
        """The first rows of calls that begin while something lasts in their stand, from one moment to another."""
        line = self.by_begin
        start, stop = line.between(stand, since, until + 1)
        lasting = np.zeros(len(self.first) + 1, np.int64)
        np.add.at(lasting, start, 1)
        np.add.at(lasting, stop, -1)
        return self.first[line.order[positions(np.cumsum(lasting)[:-1] > 0)]]

    def may_have_put_back(self, where: Ints) -> Mask:
        """May the tenure of each of these deliveries have done so in manual mode before the history began?"""
        auto = self.rows.code("commit_mode", CommitMode.AUTO)
        other: Mask = self.rows.text("commit_mode")[where] != auto
        return other & self.tenures.may_be_older(where)

    @cached_property
    def _of_stands(self) -> Timeline:
        return Timeline(self.stands[self.at], self.rows.begin[self.at])

    @cached_property
    def come_again(self) -> tuple[Ints, Ints]:
        """Deliveries of what was put back in their stand and came again for the first time; and what put it back.

        What was given up in between waits for nothing, and comes again by another way. What may have been given up
        unseen does so from when on a call of the stand ended in what may be a manual ROLLBACK, or began of which nobody
        knows how it ended: such a one may be under way in a tenure that may be older than the history.
        """
        rows, stand, message, at = self.rows, self.stands, self.message, self.at
        begin, end = rows.begin, rows.end
        back = self.at[(self.puts_back & (end < NEVER))[self.at]]
        before = Line(message, end, back).last_before(message[at], begin[at])
        at, before = at[before != NOWHERE], before[before != NOWHERE]
        refused = rows.ended_as(Outcome.REFUSED)
        touching = np.concatenate([self.at, positions(self.letters & ~refused)])
        touched = Line(message, begin, touching).last_before(message[at], begin[at])
        by_hand = may_be_by_hand(rows) & rows.ended_as(Outcome.ROLLBACK) & (end < NEVER)
        rolls = Line(stand, end, self.at[by_hand[self.at]])
        rolled_back = chosen(end, rolls.last_before(stand[at], begin[at]), NONE) > end[before]
        unseen = Line(stand, begin, self.at[may_put_back_unseen_of(rows)[self.at]])
        unsure = rolled_back | (unseen.count_before(stand[at], begin[at]) > 0)
        unsure |= self.may_have_put_back(at)
        waits = begin[touched] <= end[before]
        waits &= ~(unsure & may_be_given_up(rows)[before])
        nameless, by_client = self._nameless
        letters = Line(by_client, begin, nameless[~refused[nameless]])
        letter = letters.last_before(by_client[at], begin[at])
        waits &= chosen(begin, letter, NONE) <= end[before]
        return at[waits], before[waits]

    @cached_property
    def owed(self) -> Owed:
        rows = self.rows
        batches = np.zeros(len(self.first), np.bool_)
        batches[:-1] = self.follows[1:] & self.puts_back[self.last[:-1]]
        mine = batches[self.number] & (self.over < NEVER)[self.number]
        row, batch = self.at[mine], self.number[mine]
        over, then = self.over[batch], rows.begin[self.first[batch + 1]]
        rolled_back = rows.ended_as(Outcome.ROLLBACK)[self.last[batch]]
        again = self.deliveries.first_after(self.message[row], rows.end[row])
        acknowledged = np.where(rolled_back, then, over)
        whenever = np.full(len(row), NONE, np.int64)  # also one that was under way
        given_up = np.minimum(
            *(
                self._ended(letters, key, row, whenever, acknowledged)[1]
                for letters, key in self._acknowledged()
            )
        )
        failing = self.letters & ~rows.ended_as(Outcome.OK) & (rows.end < NEVER)
        failed, failed_at = self._ended(positions(failing), self.message, row, over, over)
        until = np.minimum(chosen(rows.begin, again, NEVER), given_up - 1)
        until = np.minimum(until, gone_from(rows, row) - 1)
        owed = rolled_back | ~may_be_given_up(rows)[row] | (failed_at < then)
        since = np.maximum(then, over + 1)
        owed &= since <= until
        return Owed(row[owed], batch[owed], since[owed], until[owed], failed[owed])

    def _acknowledged(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Dead letters that were acknowledged, and by what they belong to a delivery: stand and offset; or, of those
        that name no incarnation, client, lane and offset."""
        arrived, (nameless, by_client) = self.rows.ended_as(Outcome.OK), self._nameless
        named = positions(self.letters & arrived)
        return (named, self.message), (nameless[arrived[nameless]], by_client)

    @cached_property
    def _nameless(self) -> tuple[Ints, Ints]:
        """Dead letters that name no incarnation; and of each row its lane, client and offset, which tell them apart."""
        rows = self.rows
        told = rows.are(Kind.DEAD_LETTER) & (rows.offset >= 0) & ~self.tenures.named
        if not told.any():
            return positions(told), self.message
        return positions(told), dense(rows.lane_client, rows.offset)[0]

    def _ended(
        self, letters: Ints, key: Ints, row: Ints, begun: Ints, ended: Ints
    ) -> tuple[Ints, Ints]:
        """The first of each row's letters that began after one moment and ended after another; and when it ended."""
        begin, end = self.rows.begin, self.rows.end
        found = Line(key, end, letters).first_after_with(
            key[row], ended, lambda index, letter: begin[letter] > begun[index]
        )
        return found, chosen(end, found, NEVER)
