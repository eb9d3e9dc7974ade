"""When all is healed and quiet, whoever has a lane has finished every message in it.

Judged at a settled drain, of lanes that somebody has: the last incarnation was neither dropped nor left (also where its
client came again) nor cut by a crash. Each message that the drain finds at or after that incarnation's start has been
finished by somebody of the group, or given up. Where everybody is recorded, and the group consumes from the first
message on, the messages count from the lowest start that any incarnation of the lane had: what lies between and nobody
finished was skipped for ever. A message whose last call ended well although its lane had been dropped meanwhile was
worked on to its end, whatever became of the result: that a client lets go of a lane in the midst of a call, or commits
what it did on it, is for other clauses. What *settled* means, and what else is left out, is said in
`specs.clauses.settled`: nothing happens while such a drain reads, so that a message which is sent meanwhile is owed
like any other. Nothing is said about how long it took.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import (
    AUTO_MODE,
    IN_PLACE,
    NO_FILTER,
    NO_RESET,
    NOTHING_TAKEN_BACK,
    SETTLED,
)
from specs.clauses.progress import GroupProgress, Incarnation, start_of
from specs.clauses.settled import SETTLED_KINDS, SettledJudge, wants
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "LIV-1"
TITLE = "every message ends finished"
STATEMENT = "When faults are healed, every message of a lane that somebody has ends finished."
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (IN_PLACE, SETTLED, NO_RESET, NO_FILTER, AUTO_MODE, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#pull")
KINDS = SETTLED_KINDS
SETTINGS = ("consume_from", "max_reconsume_times")
NEEDS = frozenset({Kind.DELIVER, Kind.READ})
EXCUSED_BY = frozenset({Kind.CRASH, Kind.JOIN, Kind.LEAVE})

__all__ = ["wants"]


@dataclass(frozen=True, slots=True)
class NeverFinished(Finding):
    """add, start: the incarnation from whose start on all is to be finished (the last one, or an earlier one that began
    lower), and what set its start: the ADD or a look-up. read: the message, found by the drain."""

    add: Row
    start: Row
    read: Row
    marker: Row


class QueueJudge(SettledJudge):
    """At stake where the last incarnation still works."""

    __slots__ = ()

    def is_at_stake(self, group: str, last: Incarnation, handed_over: bool) -> bool:
        add = last.add
        left = add is not None and self.context.is_of_an_old_life(add.client_id, add.group, add)
        return self.lives(last) and not left

    def is_done(self, progress: GroupProgress, offset: int) -> bool:
        return offset in progress.finished or offset in progress.worked

    def counts_from(self, progress: GroupProgress, last: Incarnation) -> int:
        first = self._first(progress, last)
        return min(last.start or 0, last.start or 0 if first is None else first.start or 0)

    def _first(self, progress: GroupProgress, last: Incarnation) -> Incarnation | None:
        """The incarnation with the lowest start, where all of them are recorded and no message is nobody's."""
        if not self.context.info.closed_world or self.config.consume_from != "first":
            return None
        known = [
            each
            for each in progress.incarnations.values()
            if each.add is not None and each.start is not None and not each.asked
        ]
        return min(known, key=lambda each: each.start or 0, default=None)

    def owes(self, group: str, last: Incarnation, read: Row, marker: Row) -> Iterable[Finding]:
        if last.start_row is None:
            return
        # A look-up that is answered while the queue is read may say that an incarnation begins behind the message.
        for each in (last, self._first(self.progress.groups[group], last)):
            if each is None or each.add is None or each.start_row is None:
                continue
            if (read.queue_offset or 0) >= (each.start or 0):
                certain = self.rests_for_certain
                yield NeverFinished(each.add, each.start_row, read, marker, certain=certain)
                return


judge = QueueJudge


def explain(found: NeverFinished) -> str:
    add, start, read, marker = found.add, found.start, found.read, found.marker
    return (
        f"message {read.message_id} at offset {read.queue_offset} of {read.queue} was never finished by {add.group}, "
        f"although {who(add)} had started at {start_of(start)} at {at(add)}, the lane has an owner, and all was healed "
        f"and quiet by {at(marker)}"
    )
