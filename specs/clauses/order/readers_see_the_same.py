"""Within a broker's epoch everybody who is shown an offset of a queue is shown the same message there.

Who reads, whom a message is delivered to, and who was told at the end of a send where it lies: all of them name
an offset and a message's id, and the first to do so is compared with all later ones. A crash of the broker may lose
what was not flushed, and its offsets are then given anew; so nothing is compared across a crash, and of deliveries
after a crash only those of incarnations that were added after it: others may still hold what they pulled before. In an
open world the crash may have come before the first row: a delivery by an incarnation whose ADD was not seen leaves it
open (possible).
Sends to the topics of retries and dead letters, which a broker may put elsewhere, and delayed ones, which lie
elsewhere first, are left out.
"""

from collections.abc import Mapping

import numpy as np

from specs.clauses.premises import BROKER_LIVES
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, Ints
from specs.facts.segments import by_time, dense, first_of_each
from specs.facts.stored import copies, may_have_died
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-7"
TITLE = "readers see the same"
STATEMENT = "Within a broker epoch, all readers see the same message at an offset."
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (BROKER_LIVES,)
SOURCES = ("docs/sources.md#store",)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ, Kind.ADD})
NEEDS = frozenset({Kind.DELIVER})
COLUMNS = ("broker_epoch", "incarnation", "message_id", "queue_offset", "outcome", "delay_level")


class TwoMessages(Finding):
    first: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Queues of a broker that never crashed at once; the others one row after another.

    Requests of two epochs may overlap, so that the older one ends last: a row's own epoch counts.
    """
    delay, told = rows.number("delay_level"), rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    sent = rows.are(Kind.SEND) & told & ~copies(rows) & ((delay == 0) | (delay == NONE))
    seen = sent | rows.are(Kind.DELIVER) | (rows.are(Kind.READ) & told)
    where = np.flatnonzero(seen & (rows.offset != NONE) & (rows.text("message_id") != NO_TEXT))
    if not len(where):
        return
    time = np.where(rows.are(Kind.DELIVER)[where], rows.begin[where], rows.end[where])
    order = by_time(rows.queue[where], time)
    where, time = where[order], time[order]
    crashed = np.zeros(len(where), np.bool_)
    firsts = np.flatnonzero(np.diff(rows.queue[where], prepend=-1))
    for begin, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(where)], strict=True):
        mine = slice(begin, end)
        if may_have_died(rows, where[mine]):
            crashed[mine] = True
            _through_crashes(rows, findings, where[mine], time[mine])
    _at_once(rows, findings, where[~crashed])


def _at_once(rows: Rows, findings: Findings, where: Ints) -> None:
    place, count = dense(rows.queue[where], rows.offset[where])
    before = where[first_of_each(place, count)][place]
    later = before != where
    findings.at_stake(where[later])
    message = rows.text("message_id")
    wrong = later & (message[before] != message[where])
    known = _Watched(rows)
    for one, two in zip(before[wrong].tolist(), where[wrong].tolist(), strict=True):
        sure = known.at(one, two) and known.at(two, two)
        findings.shown(TwoMessages, {"first": one, "second": two}, certain=sure)


def _through_crashes(rows: Rows, findings: Findings, where: Ints, time: Ints) -> None:
    """where: of one queue, in the order of their times."""
    context, broker = rows.context_of(int(where[0])), rows.name_of("broker", int(where[0]))
    deaths = np.asarray(context.deaths_of(broker))
    added = _added(rows, int(rows.queue[where[0]]))
    delivered, message = rows.are(Kind.DELIVER), rows.text("message_id")
    epoch = rows.number("broker_epoch")
    known: dict[int, int] = {}

    def died_since(place: int, now: int) -> bool:
        return context.broker_died_since(broker, int(rows.begin[place]), int(epoch[place]), now)

    known_adds = _Watched(rows)
    for place, now in zip(where.tolist(), time.tolist(), strict=True):
        if delivered[place]:
            crashes = deaths[deaths <= now]
            mine = added.get((int(rows.group[place]), int(rows.incarnation[place])), ())
            before = [seq for seq in mine if seq < now]
            if len(crashes) and not (before and before[-1] > crashes[-1]):
                continue
        elif died_since(place, now):
            continue
        offset = int(rows.offset[place])
        first = known.get(offset)
        if first is None or died_since(first, now):
            known[offset] = place
            continue
        findings.at_stake_times(place, 1)
        if message[first] != message[place]:
            sure = known_adds.at(first, place) and known_adds.at(place, place)
            findings.shown(TwoMessages, {"first": first, "second": place}, certain=sure)


class _Watched:
    """Which incarnations were seen to begin: what others deliver may, in an open world, come from before it begins."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.added: dict[int, Mapping[tuple[int, int], list[int]]] = {}

    def at(self, place: int, when: int) -> bool:
        """Is what the row shows known not to have been pulled before the history begins, when the other row comes?

        A delivery comes as it begins, any other row as it ends.
        """
        rows = self.rows
        if rows.context_of(place).info.closed_world or not rows.are(Kind.DELIVER)[place]:
            return True
        queue = int(rows.queue[place])
        if queue not in self.added:
            self.added[queue] = _added(rows, queue)
        seqs = self.added[queue].get((int(rows.group[place]), int(rows.incarnation[place])), ())
        until = (rows.begin if rows.are(Kind.DELIVER)[when] else rows.end)[when]
        return any(seq < until for seq in seqs)


def _added(rows: Rows, queue: int) -> Mapping[tuple[int, int], list[int]]:
    """When each incarnation of a queue's lanes was added, by group and incarnation."""
    found: dict[tuple[int, int], list[int]] = {}
    for place in np.flatnonzero(rows.are(Kind.ADD) & (rows.queue == queue)).tolist():
        key = (int(rows.group[place]), int(rows.incarnation[place]))
        found.setdefault(key, []).append(int(rows.begin[place]))
    return found


def explain(found: TwoMessages) -> str:
    first, second = found.first, found.second
    return (
        f"offset {second.queue_offset} of {second.queue} is message {first.message_id} for {who(first)} "
        f"({first.kind}, {at(first)}) and message {second.message_id} for {who(second)} ({second.kind}, {at(second)})"
    )
