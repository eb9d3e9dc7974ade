"""How far each group of a queue is: what is finished, who is owed what, and which messages are known.

*Finished*: in auto mode when the call ended SUCCESS, COMMIT or ROLLBACK (auto mode acknowledges a ROLLBACK); in
manual mode when the same or a later call of the incarnation ends COMMIT (an auto call that acknowledges does the
same: the client commits all that it has taken). In both modes only while the incarnation was not dropped before
the end. An acknowledged dead letter finishes a message in auto mode, in manual mode once a COMMIT covers it. A
manual ROLLBACK puts all that was taken and not committed back. What anybody of the group finished stays finished.

*Start*: where an incarnation begins: the value of its ADD; a look-up of the stored offset that it makes afterwards
sets it anew (if nothing is stored, to 0 where the group consumes from the first, and to nobody knows what else). Nobody
knows it either as long as a look-up has no answer that anybody saw.

*Known*: an offset certainly holds a message after a SEND that was acknowledged with it ended, or a delivery of it
began. The answer to a batch names the offset of its first message only: where the others lie readers show, which are
not asked here.

*Not known*: a message that was suspended with its counter at the limit, in a lane of which no dead letter is told, may
have been given up where nobody recorded it. It is neither owed nor finished. What so
gives up in auto mode commits what the incarnation has taken, of which nobody knows either then; what may have been
given up in manual mode is only taken, until an acknowledging call covers it.

Sends are not gone through: they are looked up, by offset, when an unfinished message is in question.

Where several groups read one queue, a SEND speaks for a group only if the group was seen before all groups seen so
far had finished that message. That takes the other lanes of the queue, so such findings are settled after all
lanes of the queue have been gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.rows import result_acknowledges
from specs.facts.findings import Findings
from specs.facts.intervals import Intervals, Searched
from specs.facts.lanes import (
    END,
    Digest,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ends_as,
    may_be_manual,
    run_lane,
)
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Ints
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome

PROGRESS_KINDS = frozenset(
    {
        Kind.DELIVER,
        Kind.DEAD_LETTER,
        Kind.ADD,
        Kind.DROP,
        Kind.FETCH_OFFSET,
        Kind.RESET,
        Kind.SEND,
    }
)


def acknowledges(op: Op) -> bool:
    """Does the call's result finish its message?"""
    return result_acknowledges(op.outcome, manual=op.manual)


def certainly_acknowledges(op: Op) -> bool:
    """Does the call's result finish its message, in whatever mode it may have been?"""
    return op.outcome is Outcome.COMMIT or (acknowledges(op) and not may_be_manual(op))


_NOTHING = slice(0, 0)


class Sends:
    """The acknowledged sends of all queues, by offset."""

    def __init__(self, rows: Rows) -> None:
        delay = rows.number("delay_level")
        sent = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.offset != NONE)
        sent &= ((delay == 0) | (delay == NONE)) & (rows.end < NEVER)
        where = np.flatnonzero(sent)
        order = np.lexsort((rows.end[where], rows.offset[where], rows.queue[where]))
        self.where: Ints = where[order]
        self._queue = rows.queue[self.where]
        self._offset = rows.offset[self.where]
        self._end = rows.end[self.where]
        queues, starts = np.unique(self._queue, return_index=True)
        stops = [*starts[1:].tolist(), len(self.where)]
        self._of = dict(
            zip(queues.tolist(), map(slice, starts.tolist(), stops), strict=True)
        )  # where the sends of a queue are

    def of_queue(self, queue: int) -> Ints:
        """The positions of a queue's sends."""
        found: Ints = self.where[self._of.get(queue, _NOTHING)]
        return found

    def _range(self, queue: int, start: int, stop: int) -> slice:
        mine = self._of.get(queue, _NOTHING)
        low, high = self._offset[mine].searchsorted((start, stop)).tolist()
        return slice(mine.start + low, mine.start + high)

    def first_known(
        self, queue: int, start: int, stop: int, now: int
    ) -> tuple[int | None, int | None]:
        """The smallest offset in start..stop-1 that a SEND which ended before `now` was acknowledged with, and the
        smallest that any SEND was, now or later."""
        part = self._range(queue, start, stop)
        if part.start >= part.stop:
            return None, None
        first = part.start
        if self._end[first] >= now:  # nearly always the first one is known
            first += int(np.argmax(self._end[part] < now))
        known = int(self._offset[first]) if self._end[first] < now else None
        return known, int(self._offset[part.start])

    def row(self, queue: int, offset: int, now: int) -> tuple[int, int] | None:
        """(position, seq of the end) of the latest such SEND of an offset."""
        part = self._range(queue, offset, offset + 1)
        known = np.flatnonzero(self._end[part] < now)
        return (
            (int(self.where[part][known[-1]]), int(self._end[part][known[-1]]))
            if len(known)
            else None
        )


def is_answered(look: Op) -> bool:
    """Was the look-up told something of the offset?"""
    return look.outcome is Outcome.REFUSED or (look.outcome is Outcome.OK and look.value != NONE)


class Begun:
    """An incarnation, and where it begins. asked: look-ups, less those of which the answer is known. start_row: what
    says where it begins."""

    __slots__ = ("add", "asked", "start", "start_row")

    def __init__(self, add: Op | None = None) -> None:
        self.add = add
        self.asked: set[int] = set()
        self.start: int | None = None
        self.start_row: Op | None = None
        if add is not None and add.value != NONE:
            self.start, self.start_row = add.value, add

    def looked_up(self, look: Op, config: Config) -> None:
        """A look-up of the stored offset ended."""
        if is_answered(look):
            self.asked.discard(look.place)
        if look.outcome is Outcome.OK and look.value >= 0:
            self.start, self.start_row = look.value, look
        elif look.outcome is Outcome.REFUSED and look.value == -1:
            first = config.consume_from == "first"
            self.start, self.start_row = (0, look) if first else (None, None)


class Incarnation(Begun):
    """One client's work on the lane."""

    __slots__ = (
        "delivers",
        "dropped",
        "lowest",
        "manual",
        "moved",
        "proof",
        "taken",
        "unsure",
        "void",
    )

    def __init__(self, add: Op | None = None) -> None:
        super().__init__(add)
        self.lowest: int | None = None
        self.delivers = False
        self.manual = False
        self.moved = -1  # a commit of a correction said that it goes on there
        self.taken = Intervals()
        # used up their retries in manual mode: who knows whether they are taken
        self.unsure: set[int] = set()
        self.dropped: Op | None = None
        self.void = False
        self.proof: Any = None


class Choice(NamedTuple):
    """What may show a finding about the message at an offset. by_send: its SEND is `message`, if there is one."""

    roles: Mapping[str, Op | None]
    offset: int
    by_send: bool = False


class Claim(NamedTuple):
    """A finding, shown by the first of these that holds."""

    kind: type[Finding]

    choices: list[Choice]
    now: int
    certain: bool


class Progress(Machine):
    """One group on the queue. A subclass asks its questions at commits or first deliveries."""

    ENDS = ends_as([Kind.DELIVER, Kind.DEAD_LETTER, Kind.FETCH_OFFSET])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        rows = lane.digest.rows
        self.queue = int(rows.queue[lane.place])
        self.sends: Sends = rows.shared(Sends)
        self.finished = Intervals()
        self.delivered = Intervals()
        self.searched = Searched()  # where nothing is owed, nor will be by a SEND
        self.unfinished: dict[int, list[Op]] = {}
        self.incarnations: dict[int, Incarnation] = {}
        self.was_reset = False
        self.untold = self.untold_letters()
        self.unknown: set[int] = (
            set()
        )  # of the unfinished: what may have been given up without a word
        self.worked: set[int] = (
            set()
        )  # of them: whose last call ended well, after its lane was dropped
        self.claims: list[Claim] = []
        self.shared = False  # does another group read the queue?
        self.seen_at = NEVER
        self.log: list[
            tuple[int | Stretch, int, int]
        ] = []  # what was finished when, for the other groups

    def incarnation(self, code: int) -> Incarnation:
        found = self.incarnations.get(code)
        if found is None:
            found = self.incarnations[code] = Incarnation()
        return found

    def seen(self) -> None:
        self.seen_at = min(self.seen_at, self.now)

    # ---- stretches

    def takes(self, stretch: Stretch) -> bool:
        first = stretch.first
        mine = self.incarnation(first.incarnation)
        if mine.dropped is not None:
            return False
        self.seen()
        if not mine.delivers:
            self.first_delivery(mine, first)
            mine.delivers = True
        mine.manual = first.manual
        mine.lowest = first.offset if mine.lowest is None else min(mine.lowest, first.offset)
        mine.unsure = {each for each in mine.unsure if not first.offset <= each < stretch.stop}
        if stretch.finished_to > first.offset:
            self._finish(first.offset, stretch.finished_to, stretch)
            # What was taken before is committed along with the first that commits.
            self._commit_taken(mine, stretch)
        if stretch.finished_to < stretch.stop:
            for op in self.lane.digest.calls_of((stretch,)):
                self._hold(op)
            mine.taken.add(stretch.finished_to, stretch.stop)
        self.delivered.add(first.offset, stretch.stop)
        self.searched.changed(first.offset)
        return True

    # ---- begins

    def begins(self, op: Op) -> None:
        if op.kind is Kind.DELIVER:
            self.seen()
            self._deliver(op)
        elif op.kind is Kind.ADD:
            self.seen()
            if op.incarnation != NO_TEXT:
                self.incarnations[op.incarnation] = Incarnation(op)
        elif op.kind is Kind.DROP:
            self.seen()
            if op.incarnation != NO_TEXT and self.incarnation(op.incarnation).dropped is None:
                self.incarnation(op.incarnation).dropped = op
        elif op.kind is Kind.FETCH_OFFSET:
            if op.incarnation != NO_TEXT:
                self.incarnation(op.incarnation).asked.add(op.place)
        elif op.kind is Kind.RESET:
            self.seen()
            self._reset()
        elif op.kind in (Kind.DEAD_LETTER, Kind.SEND_BACK):
            self.untold = self.context.info.begins_late

    def first_delivery(self, mine: Incarnation, op: Op) -> None:
        """The incarnation delivers for the first time."""

    def _deliver(self, op: Op) -> None:
        if op.incarnation == NO_TEXT or op.offset == NONE:
            return
        mine = self.incarnation(op.incarnation)
        if not mine.delivers:
            self.first_delivery(mine, op)
            mine.delivers = True
        mine.manual = op.manual
        mine.lowest = op.offset if mine.lowest is None else min(mine.lowest, op.offset)
        self.delivered.add(op.offset)
        self.searched.changed(op.offset)
        mine.unsure.discard(op.offset)
        self._hold(op)

    def _hold(self, op: Op) -> None:
        """Remember the delivery until somebody has finished its message."""
        if op.offset in self.finished:
            return
        self.unknown.discard(op.offset)
        self.worked.discard(op.offset)
        before = self.unfinished.get(op.offset, ())
        self.unfinished[op.offset] = [
            *(each for each in before if each.incarnation != op.incarnation),
            op,
        ]

    def _reset(self) -> None:
        self.was_reset = True
        self.unfinished.clear()
        self.unknown.clear()
        self.worked.clear()
        for each in self.incarnations.values():
            each.void = True
            each.start = each.start_row = each.lowest = None
            each.taken.clear()
            each.unsure.clear()

    # ---- ends

    def ends(self, op: Op) -> None:
        if op.kind is Kind.DELIVER:
            self.seen()
            if op.incarnation != NO_TEXT and op.offset != NONE:
                self._call_ends(self.incarnation(op.incarnation), op)
        elif op.kind is Kind.DEAD_LETTER:
            self.seen()
            if op.incarnation != NO_TEXT and op.offset != NONE and op.outcome is Outcome.OK:
                mine = self.incarnation(op.incarnation)
                if op.manual if op.has_mode else self._mode_of_call(mine, op):
                    mine.taken.add(op.offset)
                else:
                    self._finish(op.offset, op.offset + 1)
                    self._commit_taken(mine)
        elif op.kind is Kind.FETCH_OFFSET:
            self.seen()
            if op.incarnation != NO_TEXT:
                self.incarnation(op.incarnation).looked_up(op, self.config)

    def _mode_of_call(self, mine: Incarnation, letter: Op) -> bool:
        """Was the call of this dead letter's message in manual mode?"""
        held = self.unfinished.get(letter.offset, ())
        own = [each.manual for each in held if each.incarnation == letter.incarnation]
        return own[-1] if own else mine.manual

    def _call_ends(self, mine: Incarnation, op: Op) -> None:
        if op.offset in self.unfinished and self.may_be_given_up(op):
            self.unknown.add(op.offset)
        if mine.dropped is not None:
            if acknowledges(op) and op.offset in self.unfinished:
                self.worked.add(op.offset)
            return
        if op.offset in self.unfinished and self.used_up(op):
            if op.manual:
                mine.unsure.add(op.offset)
            else:  # if it was given up, all that was taken was committed with it
                covered = [
                    each for start, stop in mine.taken.ranges() for each in range(start, stop)
                ]
                self._doubt([*covered, *mine.unsure])
                mine.unsure.clear()
        if acknowledges(op):
            self._finish(op.offset, op.offset + 1)
            self._commit_taken(mine)
        elif op.manual and op.outcome is Outcome.SUCCESS:
            mine.taken.add(op.offset)
        elif op.manual and op.outcome is Outcome.ROLLBACK:
            mine.taken.clear()
            mine.unsure.clear()

    def _doubt(self, offsets: Iterable[int]) -> None:
        """These may be finished, and nobody has told."""
        self.unknown.update(each for each in offsets if each in self.unfinished)

    def _commit_taken(self, mine: Incarnation, by: Stretch | None = None) -> None:
        self._doubt(mine.unsure)
        mine.unsure.clear()
        if mine.taken:
            for start, stop in mine.taken.ranges():
                self._finish(start, stop, by)
            mine.taken.clear()

    def _finish(self, start: int, stop: int, by: Stretch | None = None) -> None:
        self.finished.add(start, stop)
        if self.unknown:
            self.unknown.difference_update([each for each in self.unknown if start <= each < stop])
        if self.unfinished:
            if stop - start > len(self.unfinished):
                for offset in [each for each in self.unfinished if start <= each < stop]:
                    del self.unfinished[offset]
            else:
                for offset in range(start, stop):
                    self.unfinished.pop(offset, None)
        if self.shared:
            self.log.append((self.now if by is None else by, start, stop))

    def finished_at(self, offset: int) -> int:
        """The seq at which the group had finished the offset; NEVER if it has not."""
        for when, start, stop in self.log:
            if start <= offset < stop:
                return when if isinstance(when, int) else self._within(when, offset)
        return NEVER

    def _within(self, stretch: Stretch, offset: int) -> int:
        """The first acknowledging end of the stretch that covers the offset."""
        own = offset if stretch.first.offset <= offset < stretch.stop else stretch.first.offset
        for _at, phase, op in self.lane.digest.expand(stretch):
            if phase == END and acknowledges(op) and op.offset >= own:
                return op.end
        return NEVER

    # ---- questions

    def owed(self, start: int, stop: int) -> Iterator[int]:
        """Offsets in start..stop-1 that certainly hold a message which nobody of the group finished, ascending."""
        offset, is_first = self.searched.skip(start), True
        while True:
            known, free = self._first_unfinished(offset, stop)
            if is_first:
                self.searched.add(start, free)
                is_first = False
            if known is None:
                return
            if not (self.untold and known in self.unknown):
                yield known
            offset = known + 1

    def _first_unfinished(self, start: int, stop: int) -> tuple[int | None, int]:
        """(the first offset in start..stop-1 that certainly holds a message which nobody is known to have finished;
        below which no SEND that ends later will show one)."""
        offset, free = start, stop
        while True:
            offset = self.finished.first_missing(offset)
            delivered = self.delivered.first_present(offset)
            until = stop if delivered is None else min(stop, delivered)
            sent, ever_sent = self.sends.first_known(self.queue, offset, until, self.now)
            free = free if ever_sent is None else min(free, ever_sent)
            known = delivered if sent is None else sent
            if known is None or known >= stop:
                return None, free
            if known == offset:
                return offset, min(free, offset)
            offset = known

    def holds(self, start: int, stop: int) -> bool:
        """Is any offset in start..stop-1 known to hold a message?"""
        first = self.delivered.first_present(start)
        return (first is not None and first < stop) or (
            self.sends.first_known(self.queue, start, stop, self.now)[0] is not None
        )

    def drop_of(self, op: Op) -> Op | None:
        """The drop that keeps an acknowledging delivery from finishing its message: part of the evidence."""
        found = self.incarnations.get(op.incarnation)
        return found.dropped if found is not None and acknowledges(op) else None

    def claim(self, kind: type[Finding], choices: list[Choice], *, certain: bool = True) -> None:
        """A finding of this kind, shown by the first choice that holds."""
        if choices:
            self.claims.append(Claim(kind, choices, self.now, certain))


def settle(lanes: list[Progress]) -> None:
    """Turn the claims of one queue's groups into findings, now that all of them have been gone through."""
    in_turn = sorted(
        (lane for lane in lanes if lane.seen_at < NEVER), key=lambda lane: lane.seen_at
    )
    for lane in lanes:
        for claim in lane.claims:
            for roles, offset, by_send in claim.choices:
                places = {name: NOWHERE if op is None else op.place for name, op in roles.items()}
                if by_send:
                    sent = lane.sends.row(lane.queue, offset, claim.now)
                    if sent is None or _forgotten(in_turn, lane, offset, sent[1]):
                        continue
                    places["message"] = sent[0]
                lane.findings.shown(claim.kind, places, {"offset": offset}, certain=claim.certain)
                break


def _forgotten(in_turn: list[Progress], lane: Progress, offset: int, sent_at: int) -> bool:
    """Had all groups seen so far finished the message before this group was seen?"""
    for number, following in enumerate(in_turn):
        then = following.seen_at
        if (
            number
            and sent_at < then
            and all(each.finished_at(offset) < then for each in in_turn[:number])
        ):
            return True
        if following is lane:
            break
    return False


def each_queue(machine: type[Progress], kinds: Iterable[Kind]) -> Callable[[Rows, Findings], None]:
    """Judges lane by lane, and asks about the sends of the whole queue."""
    return partial(_run_queues, machine=machine, wanted=frozenset(kinds))


def _run_queues(
    rows: Rows, findings: Findings, *, machine: type[Progress], wanted: frozenset[Kind]
) -> None:
    every = rows.shared(Digest).lanes(wanted, ends=machine.ENDS, grouped=False)
    of_queue = groupby(every, lambda lane: int(rows.queue[lane.place]))
    for _queue, lanes in of_queue:
        states = [machine(lane, findings) for lane in lanes]
        for state in states:
            state.shared = len(states) > 1
            run_lane(state, state.lane, NEVER)
            if state.stakes:
                findings.at_stake_times(state.lane.place, state.stakes)
        settle(states)
