"""What is finished in a queue, group by group: shared by the clauses that compare offsets with finished messages.

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
have been given up where nobody recorded it. It is neither owed nor finished (`incarnations.UntoldLetters`). What so
gives up in auto mode commits what the incarnation has taken, of which nobody knows either then; what may have been
given up in manual mode is only taken, until an acknowledging call covers it.

Memory: ranges of offsets, and rows only for what is not finished: a SEND's until every group that was seen on the
queue has finished it, a delivery's until its own group has. So what is kept is the backlog, not the history.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specs.clauses.context import Context
from specs.clauses.incarnations import UntoldLetters
from specs.clauses.intervals import Intervals, Searched
from specs.clauses.rows import acknowledges, is_manual
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

PROGRESS_KINDS = frozenset(
    {Kind.SEND, Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.DROP, Kind.FETCH_OFFSET, Kind.RESET}
)


class Incarnation:
    """One client's work on the lane. start_row: the ADD or the look-up that says where it begins."""

    __slots__ = (
        "add",
        "asked",
        "delivers",
        "dropped",
        "lowest",
        "manual",
        "moved",
        "name",
        "proof",
        "start",
        "start_row",
        "taken",
        "untold",
        "void",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.add: Row | None = None
        self.asked: set[int] = (
            set()
        )  # its look-ups of which nobody saw the answer: it may begin anywhere
        self.start: int | None = None
        self.start_row: Row | None = None
        self.lowest: int | None = None  # the lowest offset that it delivered
        self.delivers = False  # has it delivered anything?
        self.manual = False  # is its latest call in manual mode?
        self.taken = Intervals()  # ended well in manual mode, not committed
        self.moved = -1  # where a broker's word made it go on, further ahead
        self.untold: set[int] = (
            set()
        )  # in manual mode: may have been given up unseen, not committed
        self.dropped: Row | None = None
        self.void = False  # the offset was reset under it: nothing is known any more
        self.proof: Any = None  # for who wants to know what was stored when it began


class GroupProgress:
    """One group on the queue, that is one lane."""

    __slots__ = (
        "config",
        "delivered",
        "finished",
        "incarnations",
        "letters",
        "queue",
        "searched",
        "unfinished",
        "unknown",
        "was_added",
        "was_reset",
        "worked",
    )

    def __init__(self, queue: QueueProgress) -> None:
        self.queue = queue
        self.config = queue.config
        self.finished = Intervals()
        self.delivered = Intervals()
        self.searched = Searched()  # where nothing is owed
        self.unfinished: dict[int, list[Row]] = {}  # the latest delivery of each incarnation
        self.incarnations: dict[str, Incarnation] = {}
        self.was_reset = False
        self.was_added = False  # has anybody ever begun to work on the lane?
        self.letters = UntoldLetters(queue.context)
        self.unknown: set[int] = set()  # of the unfinished: what may have been given up unseen
        self.worked: set[int] = (
            set()
        )  # of them: whose last call ended well, after its lane was dropped

    def incarnation(self, name: str) -> Incarnation:
        found = self.incarnations.get(name)
        if found is None:
            found = self.incarnations[name] = Incarnation(name)
        return found

    # ------------------------------------------------------------ begins

    def add(self, row: Row) -> Incarnation | None:
        self.was_added = True
        if row.incarnation is None:
            return None
        new = self.incarnations[row.incarnation] = Incarnation(row.incarnation)
        new.add = row
        if row.value is not None:
            new.start, new.start_row = row.value, row
        return new

    def drop(self, row: Row) -> None:
        if row.incarnation is not None:
            mine = self.incarnation(row.incarnation)
            mine.dropped = mine.dropped or row  # it may be told twice

    def reset(self) -> None:
        self.was_reset = True
        self.unfinished.clear()
        self.unknown.clear()
        self.worked.clear()
        for each in self.incarnations.values():
            each.void = True
            each.start = each.start_row = each.lowest = None
            each.taken.clear()
            each.untold.clear()

    def deliver(self, row: Row) -> None:
        offset = row.queue_offset
        if row.incarnation is None or offset is None:
            return
        mine = self.incarnation(row.incarnation)
        mine.delivers = True
        mine.manual = is_manual(row)
        if mine.lowest is None or offset < mine.lowest:
            mine.lowest = offset
        self.delivered.add(offset)
        self.searched.changed(offset)
        mine.untold.discard(offset)
        if offset in self.finished:
            return
        self.unknown.discard(offset)
        self.worked.discard(offset)
        rows = self.unfinished.get(offset)
        if rows is None:
            self.unfinished[offset] = [row]
        else:
            rows[:] = [each for each in rows if each.incarnation != row.incarnation]
            rows.append(row)

    # ------------------------------------------------------------ ends

    def delivered_to_end(self, row: Row) -> None:
        offset = row.queue_offset
        if row.incarnation is None or offset is None:
            return
        mine = self.incarnation(row.incarnation)
        may_take = offset in self.unfinished and self.letters.may_give_up(row)
        if may_take and not is_manual(row):
            self.unknown.add(offset)
        if mine.dropped is not None:
            if acknowledges(row) and offset in self.unfinished:
                self.worked.add(offset)
            return
        if may_take:
            self._may_take(mine, row, offset)
        if acknowledges(row):
            self.finish(offset)
            self._commit_taken(mine)
        elif is_manual(row):
            if row.outcome is Outcome.SUCCESS:
                mine.taken.add(offset)
            elif row.outcome is Outcome.ROLLBACK:
                mine.taken.clear()
                mine.untold.clear()

    def given_up(self, row: Row) -> None:
        offset = row.queue_offset
        if row.incarnation is None or offset is None or row.outcome is not Outcome.OK:
            return
        mine = self.incarnation(row.incarnation)
        if self._is_by_hand(mine, row, offset):
            mine.taken.add(offset)
        else:
            self.finish(offset)
            self._commit_taken(mine)

    def _is_by_hand(self, mine: Incarnation, row: Row, offset: int) -> bool:
        """Is the dead letter of manual mode? Where it does not say, its message's call does."""
        if row.commit_mode is not None:
            return is_manual(row)
        for call in self.unfinished.get(offset, ()):
            if call.incarnation == mine.name:
                return is_manual(call)
        return mine.manual

    def looks_up(self, row: Row) -> None:
        """An incarnation begins to look the stored offset up."""
        if row.incarnation is not None:
            self.incarnation(row.incarnation).asked.add(row.seq_begin)

    def looked_up(self, row: Row) -> None:
        """A look-up of the stored offset by an incarnation that has begun has ended."""
        if row.incarnation is None:
            return
        mine = self.incarnation(row.incarnation)
        if row.outcome is Outcome.REFUSED or (row.outcome is Outcome.OK and row.value is not None):
            mine.asked.discard(row.seq_begin)
        if row.outcome is Outcome.OK and row.value is not None and row.value >= 0:
            mine.start, mine.start_row = row.value, row
        elif row.outcome is Outcome.REFUSED and row.value == -1:
            first = self.config.consume_from == "first"
            mine.start, mine.start_row = (0, row) if first else (None, None)

    def _may_take(self, mine: Incarnation, row: Row, offset: int) -> None:
        """The message of this call may have been given up unseen, and what was taken may be committed with it."""
        if is_manual(row):
            mine.untold.add(offset)
            return
        for start, stop in mine.taken.ranges():
            self.unknown.update(each for each in range(start, stop) if each in self.unfinished)
        self._commit_untold(mine)

    def _commit_untold(self, mine: Incarnation) -> None:
        self.unknown.update(each for each in mine.untold if each in self.unfinished)
        mine.untold.clear()

    def _commit_taken(self, mine: Incarnation) -> None:
        self._commit_untold(mine)
        if mine.taken:
            for start, stop in mine.taken.ranges():
                for offset in range(start, stop):
                    self.finish(offset)
            mine.taken.clear()

    def finish(self, offset: int) -> None:
        self.finished.add(offset)
        self.unfinished.pop(offset, None)
        self.unknown.discard(offset)
        self.worked.discard(offset)
        self.queue.finished(offset)

    # ------------------------------------------------------------ questions

    def owed(self, start: int, stop: int) -> Iterator[int]:
        """Offsets in start..stop-1 that certainly hold a message which nobody of the group finished, ascending."""
        offset, is_first = self.searched.skip(start), True
        while (known := self._first_unfinished(offset, stop)) is not None:
            if is_first:
                self.searched.add(start, known)
                is_first = False
            if not self.may_be_given_up(known):
                yield known
            offset = known + 1
        if is_first:
            self.searched.add(start, stop)

    def _first_unfinished(self, start: int, stop: int) -> int | None:
        """The first offset in start..stop-1 that certainly holds a message which nobody is known to have finished."""
        offset = start
        while True:
            offset = self.finished.first_missing(offset)
            known = self.delivered.first_present(offset)
            also = self.queue.sent.first_present(offset)
            if known is None or (also is not None and also < known):
                known = also
            if known is None or known >= stop:
                return None
            if known == offset:
                return offset
            offset = known

    def may_be_given_up(self, offset: int) -> bool:
        """May somebody have given the message up, and nobody have told?"""
        return offset in self.unknown and not self.letters.told

    def holds(self, start: int, stop: int) -> bool:
        """Is any offset in start..stop-1 known to hold a message?"""
        first = (known.first_present(start) for known in (self.delivered, self.queue.sent))
        return any(offset is not None and offset < stop for offset in first)

    def drop_of(self, row: Row) -> Row | None:
        """The drop that keeps an acknowledging delivery from finishing its message: part of the evidence."""
        found = self.incarnations.get(row.incarnation or "")
        return found.dropped if found is not None and acknowledges(row) else None


class QueueProgress:
    """One queue: what was sent to it, and how far each group is."""

    __slots__ = ("config", "context", "groups", "send_rows", "sent")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.config = context.info.config
        self.sent = Intervals()
        self.send_rows: dict[int, Row] = {}
        self.groups: dict[str, GroupProgress] = {}

    def group(self, row: Row) -> GroupProgress:
        name = row.group or ""
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = GroupProgress(self)
        return found

    def begins(self, row: Row) -> None:
        """An operation of PROGRESS_KINDS, or a send-back, begins."""
        match row.kind:
            case Kind.DELIVER:
                self.group(row).deliver(row)
            case Kind.DEAD_LETTER | Kind.SEND_BACK:
                self.group(row).letters.begins(row)
            case Kind.ADD:
                self.group(row).add(row)
            case Kind.DROP:
                self.group(row).drop(row)
            case Kind.FETCH_OFFSET:
                self.group(row).looks_up(row)
            case Kind.RESET:
                self.group(row).reset()
            case _:
                pass

    def ends(self, row: Row) -> None:
        """An operation of PROGRESS_KINDS ends."""
        match row.kind:
            case Kind.DELIVER:
                self.group(row).delivered_to_end(row)
            case Kind.SEND:
                self._sent(row)
            case Kind.DEAD_LETTER:
                self.group(row).given_up(row)
            case Kind.FETCH_OFFSET:
                self.group(row).looked_up(row)
            case _:
                pass

    def _sent(self, row: Row) -> None:
        offset = row.queue_offset
        if row.outcome is not Outcome.OK or offset is None or row.delay_level:
            return  # a delayed message lies in another queue first
        self.sent.add(offset)
        for group in self.groups.values():
            group.searched.changed(offset)
        if not (self.groups and all(offset in group.finished for group in self.groups.values())):
            self.send_rows[offset] = row

    def finished(self, offset: int) -> None:
        """A group finished the offset: its SEND is forgotten once every group has."""
        if offset in self.send_rows and (
            len(self.groups) == 1 or all(offset in group.finished for group in self.groups.values())
        ):
            del self.send_rows[offset]


def start_of(row: Row) -> int:
    """Where the row says that an incarnation starts: a look-up that found nothing stored says 0, from the first."""
    return max(row.value or 0, 0)
