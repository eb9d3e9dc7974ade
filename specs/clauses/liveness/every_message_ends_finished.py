"""When all is healed and quiet, whoever has a lane has finished every message in it.

Judged at a settled drain, of lanes that somebody has: the last incarnation was neither dropped nor left nor cut by a
crash. Each message that the drain finds at or after that incarnation's start has been finished by somebody of the
group, or given up. What *settled* means, and what else is left out, is said in `specs.clauses.settled`. Nothing is
said about how long it took.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import AUTO_MODE, NO_FILTER, NO_RESET, NOTHING_TAKEN_BACK, ORDERLY, SETTLED, Finding, at, who
from specs.clauses.progress import Incarnation
from specs.clauses.settled import SETTLED_KINDS, SettledJudge, wants
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "LIV-1"
TITLE = "every message ends finished"
STATEMENT = "When faults are healed, every message of a lane that somebody has ends finished."
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (ORDERLY, SETTLED, NO_RESET, NO_FILTER, AUTO_MODE, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#pull")
KINDS = SETTLED_KINDS
NEEDS = frozenset({Kind.DELIVER, Kind.READ})

__all__ = ["wants"]


@dataclass(frozen=True, slots=True)
class NeverFinished(Finding):
    """start: what set the incarnation's start: the ADD or a look-up. read: the message, found by the drain."""

    add: Row
    start: Row
    read: Row
    marker: Row


class QueueJudge(SettledJudge):
    """At stake where the last incarnation still works."""

    __slots__ = ()

    def is_at_stake(self, group: str, last: Incarnation, handed_over: bool) -> bool:
        return self.lives(last)

    def owes(self, group: str, last: Incarnation, read: Row, marker: Row) -> Iterable[Finding]:
        if last.add is not None and last.start_row is not None:
            yield NeverFinished(last.add, last.start_row, read, marker)


judge = QueueJudge


def explain(found: NeverFinished) -> str:
    add, read, marker = found.add, found.read, found.marker
    return (
        f"message {read.message_id} at offset {read.queue_offset} of {read.queue} was never finished by {add.group}, "
        f"although {who(add)}, who started at {found.start.value} at {at(add)}, has the lane, and all was healed and "
        f"quiet by {at(marker)}"
    )
