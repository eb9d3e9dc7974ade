"""What an incarnation gave up, and with which batch it was last delivered: shared by the clauses of given-up messages.

A call of several messages is put back as a whole. So a message that was given up comes again, and rightly, as long as
another one of its batch has to: one that asked for it and was not given up itself. Remembered are the messages of the
last call, those that have to come again, and those that were given up (few).

A dead letter that was stored weakly (codes 10 to 12: not flushed, or not copied, in time) may be lost with its broker.
A client may take it for sent or send it again, so that it counts neither as acknowledged nor as failed.

What began before an ADD of its incarnation, or a RESET, is of an earlier life and does not count when it ends.
"""

from __future__ import annotations

from specs.clauses.context import Context
from specs.clauses.judging import Judge
from specs.clauses.rows import asks_again, is_manual, may_have_put_back, may_put_back_unseen
from specs.clauses.stored import STORED_WEAKLY
from specs.history.row import Row
from specs.vocabulary import LISTENER_RESULTS, Kind, Outcome

BATCH_KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})


def is_acknowledged(letter: Row) -> bool:
    """Was the dead letter answered so that nobody may send it again?"""
    return letter.outcome is Outcome.OK and letter.code not in STORED_WEAKLY


class Batch:
    """The messages of one call, by offset. whole: none of it can be cut off, where the history begins."""

    __slots__ = ("op", "rows", "whole")

    def __init__(self, op: int, whole: bool) -> None:
        self.op = op
        self.whole = whole
        self.rows: dict[int, Row] = {}

    def may_come_again(self) -> bool:
        """Did any of its rows tell that it was put back, or none of them how it ended?"""
        rows = self.rows.values()
        return any(map(asks_again, rows)) or all(
            row.outcome not in LISTENER_RESULTS for row in rows
        )


class Work:
    """One incarnation. since: what began earlier is not of it.

    manual: has it, or may it have, made a call in manual mode, in which a ROLLBACK replays what was given up as well?
    last: offset → the message's last batch. letters: offset → its first acknowledged dead letter. again: what came
    again since, and whether it had to, with others of its batch.
    """

    __slots__ = ("again", "begun", "current", "last", "letters", "manual", "since", "size")

    def __init__(self, size: int, since: int, *, begun: bool = False) -> None:
        self.size = size  # so many messages a call holds at most
        self.since = since
        self.begun = begun  # something of it was seen before
        self.manual = False
        self.current: Batch | None = None
        self.last: dict[int, Batch] = {}
        self.letters: dict[int, Row] = {}
        self.again: dict[int, bool] = {}

    def others_come(self, offset: int, op: int) -> bool | None:
        """Does another message of its last batch have to come again, in this call or later? None: nobody knows."""
        batch = self.last.get(offset)
        if batch is None:
            return None
        if not batch.may_come_again():
            return False
        if not batch.whole and len(batch.rows) < self.size:
            return None
        return any(
            other not in self.letters
            and (self.last.get(other) is batch or self._comes_in(other, op))
            for other in batch.rows
            if other != offset
        )

    def batch_of(self, offset: int) -> tuple[Row, ...]:
        """The message's last batch, and the dead letters of that."""
        batch = self.last.get(offset)
        if batch is None:
            return ()
        return (
            *batch.rows.values(),
            *(self.letters[each] for each in batch.rows if each in self.letters),
        )

    def _comes_in(self, offset: int, op: int) -> bool:
        batch = self.last.get(offset)
        return batch is not None and batch.op == op

    def delivered(self, row: Row, offset: int) -> None:
        if self.current is None or self.current.op != row.op_id:
            self._finished(self.current)
            self.current = Batch(row.op_id, self.begun)
            self.begun = True
        if offset in self.letters:
            self.again[offset] = self.others_come(offset, row.op_id) is not False
        self.current.rows[offset] = row
        self.last[offset] = self.current
        if may_put_back_unseen(row):
            self.manual = True  # nobody may ever see it end

    def _finished(self, batch: Batch | None) -> None:
        if batch is None or batch.may_come_again():
            return
        for offset in batch.rows:
            if self.last.get(offset) is batch and offset not in self.letters:
                del self.last[offset]

    def given_up(self, row: Row, offset: int) -> None:
        """The dead letter's answer is there, or there is none. One that failed, of what came again, is owed."""
        if row.outcome is Outcome.OK:
            if is_acknowledged(row):
                self.letters.setdefault(offset, row)
            self.again.pop(offset, None)
        elif self.again.pop(offset, False):
            del self.letters[offset]


class BatchesJudge(Judge):
    """Keeps the work of each incarnation of a lane."""

    __slots__ = ("works",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.works: dict[str, Work] = {}

    def work_of(self, row: Row) -> Work | None:
        """What the row's incarnation did so far; None for rows that are not about a message of one."""
        if row.kind is Kind.RESET:
            self.works.clear()
            return None
        if row.incarnation is None:
            return None
        if row.kind is Kind.ADD:
            self.works[row.incarnation] = Work(self.config.batch, row.seq_begin, begun=True)
            return None
        if row.queue_offset is None:
            return None
        work = self.works.get(row.incarnation)
        if work is None:
            work = self.works[row.incarnation] = Work(
                self.config.batch, row.seq_begin, begun=self.context.info.closed_world
            )
        return work

    def ended(self, row: Row) -> bool:
        """An operation ends. Was a message given up for the first time, or once more, that nothing may replay?"""
        work = self.works.get(row.incarnation or "")
        if (
            work is None
            or row.seq_begin < work.since
            or row.queue_offset is None
            or row.kind not in (Kind.DELIVER, Kind.DEAD_LETTER)
        ):
            return False
        if is_manual(row) or (row.kind is Kind.DELIVER and may_have_put_back(row)):
            work.manual = True
        if row.kind is Kind.DELIVER or work.manual:
            return False
        work.given_up(row, row.queue_offset)
        return is_acknowledged(row)
