"""What an incarnation gave up, and with which batch it was last delivered: for the clauses of given-up messages.

A call of several messages is put back as a whole. So a message that was given up comes again, and rightly, as long as
another one of its batch has to: one that asked for it and was not given up itself. Remembered are the messages of the
last call, those that have to come again, and those that were given up (few).

A dead letter that was stored weakly (codes 10 to 12: not flushed, or not copied, in time) may be lost with its broker.
A client may take it for sent or send it again, so that it counts neither as acknowledged nor as failed.

What began before an ADD of its incarnation, or a RESET, is of an earlier life and does not count when it ends.
"""

from __future__ import annotations

from specs.facts.findings import Findings
from specs.facts.lanes import (
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    ends_as,
    may_have_put_back,
    may_put_back_unseen,
)
from specs.facts.segments import NO_TEXT, NONE
from specs.facts.stored import STORED_WEAKLY
from specs.vocabulary import LISTENER_RESULTS, Kind, Outcome

BATCH_KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})


def is_safe(letter: Op) -> bool:
    """Was the dead letter answered so that nobody may send it again?"""
    return letter.outcome is Outcome.OK and letter.code not in STORED_WEAKLY


class Work:
    """One incarnation. calls: by number, the messages of a call; latest: of a message, the number of its last call. The
    number is ours: what a call goes by may come again. born: operations that began before are another life's.

    manual: has it, or may it have, made a call in manual mode, in which a ROLLBACK replays what was given up as well?
    letters: of a message given up, its first acknowledged dead letter. back: those that came again since, and whether
    their batch may have had to.
    """

    __slots__ = (
        "back",
        "born",
        "calls",
        "cut",
        "highest",
        "latest",
        "letters",
        "manual",
        "op",
        "running",
        "size",
        "whole",
    )

    def __init__(self, size: int, born: int, *, whole: bool = False) -> None:
        self.size = size
        self.born = born
        self.whole = whole  # nothing of the next call can be cut off
        self.cut: int | None = None  # the call of which something may be
        self.manual = False
        self.op = NONE
        self.running = -1
        self.highest = -1  # of the offsets in `latest` and `letters`
        self.calls: dict[int, dict[int, Op]] = {}
        self.latest: dict[int, int] = {}
        self.letters: dict[int, Op] = {}
        self.back: dict[int, bool] = {}

    def begin(self, call: int) -> None:
        """A call: what the one before finished is forgotten, and calls of which nothing is the last word."""
        if call == self.op:
            return
        self.op = call
        before = self.calls.get(self.running, {})
        for offset in before if self._is_finished(before) else ():
            if self.latest.get(offset) == self.running and offset not in self.letters:
                del self.latest[offset]
        wanted = set(self.latest.values())
        self.calls = {each: ops for each, ops in self.calls.items() if each in wanted}
        self.running += 1
        self.calls[self.running] = {}
        if not self.whole:
            self.cut, self.whole = self.running, True

    def _is_finished(self, held: dict[int, Op]) -> bool:
        """Is there a result of the call, and none that puts it back?"""
        known = False
        for op in held.values():
            if op.outcome in LISTENER_RESULTS:
                if asks_again(op):
                    return False
                known = True
        return known

    def rightly(self, offset: int, call: int) -> bool | None:
        """May the message come again in this call, because of others? None: its own call is unknown."""
        last = self.latest.get(offset)
        if last is None:
            return None
        if self._is_finished(self.calls[last]):
            return False
        if last == self.cut and len(self.calls[last]) < self.size:
            return None
        others = [
            other for other in self.calls[last] if other != offset and other not in self.letters
        ]
        return any(
            self.latest.get(other) == last or self._comes_in(other, call) for other in others
        )

    def _comes_in(self, offset: int, call: int) -> bool:
        latest = self.latest.get(offset)
        return latest is not None and self.calls[latest][offset].op == call

    def deliver(self, op: Op) -> None:
        self.begin(op.op)
        if op.offset in self.letters:
            self.back[op.offset] = self.rightly(op.offset, op.op) is not False
        self.calls[self.running][op.offset] = op
        self.latest[op.offset] = self.running
        self.highest = max(self.highest, op.offset)
        self.manual |= may_put_back_unseen(op)


class BatchLane(Machine):
    """Follows the work of each incarnation; a subclass compares."""

    ENDS = ends_as([Kind.DELIVER, Kind.DEAD_LETTER])
    STAKE = Kind.DEAD_LETTER

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.works: dict[int, Work] = {}
        # Of a stretch only the last row is known: not enough where a call may hold more and any may be given up.
        self.whole = self.config.batch == 1 or Kind.DEAD_LETTER not in lane.kinds

    def delivered(self, work: Work, op: Op) -> None:
        """A delivery begins."""
        work.deliver(op)

    def given_up(self, work: Work, op: Op) -> None:
        """A dead letter begins."""

    def takes(self, stretch: Stretch) -> bool:
        work = self._work(stretch.first)
        if not self.whole:
            return False
        if work.highest >= stretch.first.offset and any(
            stretch.first.offset <= offset < stretch.stop
            for offset in (*work.letters, *work.latest)
        ):
            return False
        work.whole |= stretch.calls > 1
        work.deliver(stretch.last)
        work.manual |= stretch.first.manual
        return True

    def _work(self, op: Op) -> Work:
        return self.works.setdefault(
            op.incarnation,
            Work(self.config.batch, op.begin, whole=self.context.info.closed_world),
        )

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.works.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.works[op.incarnation] = Work(self.config.batch, op.begin, whole=True)
        elif op.offset >= 0:
            work = self._work(op)
            if op.kind is Kind.DELIVER:
                self.delivered(work, op)
            else:
                self.given_up(work, op)

    def ends(self, op: Op) -> None:
        work = (
            self.works.get(op.incarnation) if op.incarnation != NO_TEXT and op.offset >= 0 else None
        )
        if work is None or op.begin < work.born:
            return
        if op.kind not in (Kind.DELIVER, Kind.DEAD_LETTER):
            return
        work.manual |= op.manual or (op.kind is Kind.DELIVER and may_have_put_back(op))
        if op.kind is Kind.DELIVER or work.manual:
            return
        came_back = work.back.pop(op.offset, False)
        if op.outcome is Outcome.OK:
            if is_safe(op):
                self.stakes += 1
                work.letters.setdefault(op.offset, op)
                work.highest = max(work.highest, op.offset)
        elif came_back:
            del work.letters[op.offset]
