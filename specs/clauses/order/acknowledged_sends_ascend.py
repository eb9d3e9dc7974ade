"""A send that was acknowledged before another began has the smaller offset, if both lie in one queue.

Whoever sent them. Sends that overlap may lie either way round. Compared with the highest offset acknowledged before the
send began; a crash of the broker since may have lost that one, and its offset may be given again. Of a send whose own
answer does not tell its place (one that was not answered, the later messages of a batch) a reader shows it: where the
message is read in the same queue, unless another attempt may have put it there. A further try of a message began with
the first one: that may have put it there, and a log that takes each message once answers all of them with that place.
So it is compared with what was acknowledged before the first try began, where that is known and told no place. In a
history that begins late there may be such a try of any message whose place a reader shows. Left out
are delayed messages (they lie elsewhere first), half messages, and sends to the topics of retries and dead letters (a
broker may put them elsewhere).
"""

import itertools
from collections.abc import Mapping

import numpy as np

from specs.clauses.premises import BROKER_LIVES
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.run_context import RunContext
from specs.facts.segments import by_time
from specs.facts.stored import copies, halves, may_have_died
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-9"
TITLE = "acknowledged sends ascend"
STATEMENT = (
    "Within a broker epoch, a send acknowledged before another began has the smaller offset if both land in one queue, "
    "whoever sent them."
)
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (BROKER_LIVES,)
SOURCES = ("docs/sources.md#store", "docs/sources.md#send")
KINDS = frozenset({Kind.SEND, Kind.READ})
NEEDS = frozenset({Kind.SEND})
COLUMNS = ("queue_offset", "delay_level", "message_id", "attempt", "detail")


class Overtook(Finding):
    """reads: that show the place of a send whose answer does not. offsets: of the earlier and the later one. first: the
    later one's first try, where this is a further one."""

    earlier: Row
    later: Row
    reads: tuple[Row, ...]
    offsets: tuple[int, int]
    first: Row | None = None


WATCHED = 64
"""So many sends acknowledged without a place are compared with later ones at a time."""


def judge(rows: Rows, findings: Findings) -> None:
    delay = rows.number("delay_level")
    sends = rows.are(Kind.SEND) & ~copies(rows) & ((delay == 0) | (delay == NONE)) & ~halves(rows)
    where = np.flatnonzero(
        sends & rows.ended_as(Outcome.OK) & (rows.offset != NONE) & (rows.end < NEVER)
    )
    where = where[by_time(rows.queue[where], rows.end[where])]
    starts = [*np.flatnonzero(np.diff(rows.queue[where], prepend=-1)).tolist(), len(where)]
    since, first = _since(rows, sends, where)
    for start, stop in itertools.pairwise(starts):
        _queue(rows, findings, where[start:stop], since[start:stop], first[start:stop])
    _told_by_readers(rows, findings, where, sends)


def _since(rows: Rows, sends: Mask, where: Ints) -> tuple[Ints, Ints]:
    """When each of these sends began (NONE: nothing can be said of it), and the first try of what is tried again."""
    since, first = rows.begin[where].copy(), np.full(len(where), NOWHERE, np.int64)
    attempt, message = rows.number("attempt"), rows.text("message_id")
    further = np.flatnonzero(attempt[where] > 1)
    if not len(further):
        return since, first
    since[further] = NONE
    tries = sends & rows.ended_as(Outcome.OK, Outcome.UNKNOWN) & (message != NO_TEXT)
    tries &= (rows.offset == NONE) | (attempt > 1)
    tries = np.flatnonzero(tries & np.isin(message, message[where[further]]))
    earliest: dict[tuple[int, int], int] = {}
    for each in tries[np.argsort(rows.begin[tries], kind="stable")].tolist():
        earliest.setdefault((int(rows.queue[each]), int(message[each])), each)
    for index in further.tolist():
        each = earliest.get((int(rows.queue[where[index]]), int(message[where[index]])))
        if each is not None and attempt[each] <= 1:
            since[index], first[index] = rows.begin[each], each
    return since, first


def _queue(rows: Rows, findings: Findings, by_end: Ints, since: Ints, first: Ints) -> None:
    """by_end: the sends of one queue. since, first: of each of them, as `_since` tells."""
    context, name = rows.context_of(int(by_end[0])), rows.name_of("broker", int(by_end[0]))
    offset, end = rows.offset[by_end], rows.end[by_end]
    highest = _highest(rows, by_end, name, context)
    ended = np.searchsorted(end, since, side="left")  # how many, before each begins
    later = np.flatnonzero((ended > 0) & (since != NONE))
    earlier = highest[ended[later] - 1]
    if may_have_died(rows, by_end):
        begin, epoch = rows.begin[by_end], rows.number("broker_epoch")[by_end]
        alive = [
            not context.broker_died_since(name, int(begin[one]), int(epoch[one]), int(end[two]))
            for one, two in zip(earlier.tolist(), later.tolist(), strict=True)
        ]
        later, earlier = later[np.asarray(alive, np.bool_)], earlier[np.asarray(alive, np.bool_)]
    findings.at_stake(by_end[later])
    wrong = offset[later] <= offset[earlier]
    if wrong.any():
        rows_of = by_end[earlier[wrong]], by_end[later[wrong]], first[later[wrong]]
        for one, two, tried in zip(*(each.tolist() for each in rows_of), strict=True):
            offsets = int(rows.offset[one]), int(rows.offset[two])
            roles = {"earlier": one, "later": two, "reads": (), "first": tried}
            findings.shown(Overtook, roles, {"offsets": offsets})


def _highest(rows: Rows, by_end: Ints, broker: str, context: RunContext) -> Ints:
    """The highest after each end; one from before a crash counts for nothing as soon as another one ends."""
    offset, begin, end = rows.offset[by_end], rows.begin[by_end], rows.end[by_end]
    if not may_have_died(rows, by_end):
        raised = np.ones(len(by_end), np.bool_)
        raised[1:] = offset[1:] > np.maximum.accumulate(offset)[:-1]
        return np.maximum.accumulate(np.where(raised, np.arange(len(by_end)), 0))
    epoch = rows.number("broker_epoch")[by_end]
    highest, found = 0, np.zeros(len(by_end), np.int64)
    for place in range(len(by_end)):
        lost = context.broker_died_since(
            broker, int(begin[highest]), int(epoch[highest]), int(end[place])
        )
        if lost or offset[place] > offset[highest]:
            highest = place
        found[place] = highest
    return found


def _told_by_readers(rows: Rows, findings: Findings, placed: Ints, sends: Mask) -> None:
    """Sends whose answer tells no place, and that were read in the queue they were sent to.

    placed: the sends that tell theirs, by queue and end.
    """
    message = rows.text("message_id")
    may_lie = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK, Outcome.UNKNOWN)
    may_lie &= message != NO_TEXT
    tells_no_place = sends & may_lie & (rows.offset == NONE)
    silent = np.flatnonzero(tells_no_place)
    if not len(silent):
        return
    told = rows.are(Kind.READ) & rows.ended_as(Outcome.OK)
    told &= (rows.offset != NONE) & (message != NO_TEXT)
    every_attempt = np.flatnonzero(may_lie & np.isin(message, message[silent]))
    every_read = np.flatnonzero(told & (rows.end < NEVER))
    for queue in np.unique(rows.queue[silent]).tolist():
        attempts = every_attempt[rows.queue[every_attempt] == queue]
        in_turn = attempts[np.argsort(rows.begin[attempts])]
        alone_until = _alone_until(rows, message, in_turn, tells_no_place)
        mine = [at for at in silent[rows.queue[silent] == queue].tolist() if at in alone_until]
        reads = every_read[rows.queue[every_read] == queue]
        _Queue(rows, findings, placed[rows.queue[placed] == queue]).compare(
            mine, reads[np.argsort(rows.end[reads], kind="stable")], alone_until
        )


def _alone_until(rows: Rows, message: Ints, attempts: Ints, silent: Mask) -> dict[int, int]:
    """Of each first try that tells no place, when the next attempt begins: up to then a reader shows where it lies.

    attempts: by their begins; also what tells its place, or waits for its time first. silent: which tell none.
    """
    first: dict[int, int] = {}
    until: dict[int, int] = {}
    attempt = rows.number("attempt")
    for each in attempts.tolist():
        before = first.setdefault(int(message[each]), each)
        if before != each:
            until[before] = min(until[before], int(rows.begin[each]))
        else:
            is_alone = silent[each] and attempt[each] in (NONE, 0, 1)
            until[each] = NEVER if is_alone else NONE
    return {each: seq for each, seq in until.items() if seq != NONE}


class _Queue:
    """One queue's sends that tell their place, by their ends."""

    def __init__(self, rows: Rows, findings: Findings, placed: Ints) -> None:
        self.rows, self.findings, self.placed = rows, findings, placed
        self.begin, self.end = rows.begin[placed], rows.end[placed]
        self._so_far: Ints | None = None

    def _highest_before(self, send: int, read: int) -> int:
        """The highest that had ended before the send began; NOWHERE if there is none."""
        before = int(np.searchsorted(self.end, self.rows.begin[send], side="left"))
        if not before:
            return NOWHERE
        if self._so_far is None:
            context, broker = self.rows.context_of(read), self.rows.name_of("broker", read)
            self._so_far = _highest(self.rows, self.placed, broker, context)
        return int(self.placed[self._so_far[before - 1]])

    def compare(self, silent: list[int], reads: Ints, alone_until: Mapping[int, int]) -> None:
        """silent: sends, by their begins, each alone until another attempt begins. reads: by their ends."""
        rows, message = self.rows, self.rows.text("message_id")
        by_message = {int(message[at]): at for at in silent}
        reads = reads[np.isin(message[reads], message[silent])]
        acknowledged = rows.ended_as(Outcome.OK)
        ends = np.sort(np.asarray([rows.end[at] for at in silent if acknowledged[at]], np.int64))
        known: list[tuple[int, int]] = []
        for read in reads.tolist():
            send = by_message.get(int(message[read]))
            if send is None or not rows.begin[send] <= rows.end[read] < alone_until[send]:
                continue
            del by_message[int(message[read])]
            if self._died(send, read):
                continue
            self._against_placed(send, read, ends, bool(acknowledged[send]))
            for other, other_read in known:
                self._against(other, other_read, send, read, acknowledged)
            known = [*known[1 - WATCHED :], (send, read)]

    def _died(self, since: int, now: int) -> bool:
        rows = self.rows
        context = rows.context_of(now)
        epoch = int(rows.number("broker_epoch")[since])
        name = rows.name_of("broker", now)
        return context.broker_died_since(name, int(rows.begin[since]), epoch, int(rows.end[now]))

    def _against_placed(self, send: int, read: int, ends: Ints, acknowledged: bool) -> None:
        rows = self.rows
        highest = self._highest_before(send, read)
        if highest != NOWHERE and not self._died(highest, read):
            self._judge(highest, send, (highest, read), read)
        if not acknowledged:
            return
        since, now = int(rows.end[send]), int(rows.end[read])
        start = np.searchsorted(self.end, since, side="right")
        stop = np.searchsorted(self.end, now, side="left")
        # As many as are watched: not one that so many others followed before the later send ended.
        last = int(np.searchsorted(ends, since, side="left")) + WATCHED
        if last < len(ends):
            stop = min(stop, np.searchsorted(self.end, ends[last], side="right"))
        later = self.placed[start:stop][self.begin[start:stop] > since]
        later = later[rows.number("attempt")[later] <= 1]
        if len(later):
            lowest = int(later[int(np.argmin(rows.offset[later]))])
            self._judge(send, lowest, (read, lowest), read)

    def _against(
        self, one: int, one_read: int, two: int, two_read: int, acknowledged: Mask
    ) -> None:
        rows = self.rows
        in_turn = rows.begin[one] < rows.begin[two]
        first, first_read, second, second_read = (
            (one, one_read, two, two_read) if in_turn else (two, two_read, one, one_read)
        )
        if (
            acknowledged[first]
            and rows.end[first] < rows.begin[second]
            and not self._died(first, two_read)
        ):
            self._judge(first, second, (first_read, second_read), first_read, second_read)

    def _judge(self, earlier: int, later: int, shown: tuple[int, int], *reads: int) -> None:
        """shown: the rows that tell the places of the two."""
        self.findings.at_stake_times(earlier, 1)
        offsets = int(self.rows.offset[shown[0]]), int(self.rows.offset[shown[1]])
        if offsets[0] >= offsets[1]:
            self.findings.shown(
                Overtook,
                {"earlier": earlier, "later": later, "reads": reads},
                {"offsets": offsets},
                certain=not self.rows.context_of(earlier).info.begins_late,
            )


def explain(found: Overtook) -> str:
    earlier, later = found.earlier, found.later
    first, second = found.offsets
    return (
        f"message {later.message_id}, which {who(later)} began to send at {at(later)}, has offset {second} of "
        f"{later.queue}, although message {earlier.message_id} at offset {first} (sent by {who(earlier)} at "
        f"{at(earlier)}) had been acknowledged before"
    )
