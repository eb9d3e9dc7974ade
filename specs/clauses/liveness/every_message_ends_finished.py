"""When all is healed and quiet, whoever has a lane has finished every message in it.

Judged at a settled drain, of lanes that somebody has: the last incarnation was neither dropped nor left (also where its
client came again) nor cut by a crash. Each message that the drain finds at or after that incarnation's start has been
finished by somebody of the group, or given up. Where everybody is recorded, and the group consumes from the first
message on, the messages count from the lowest start that any incarnation of the lane had: what lies between and nobody
finished was skipped for ever. A message whose last call ended well although its lane had been dropped meanwhile was
worked on to its end, whatever became of the result: that a client lets go of a lane in the midst of a call, or commits
what it did on it, is for other clauses. What *settled* means, and what else is left out, is said in
`specs.facts.settled`: nothing happens while such a drain reads, so that a message which is sent meanwhile is owed
like any other. Nothing is said about how long it took.
"""

from __future__ import annotations

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
from specs.clauses.words import at, start_of, who
from specs.facts.progress import Incarnation
from specs.facts.settled import SETTLED_COLUMNS, SETTLED_KINDS, Settled, each_settled_lane
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
COLUMNS = SETTLED_COLUMNS


@dataclass(frozen=True, slots=True)
class NeverFinished(Finding):
    """add, start: the incarnation from whose start on all is to be finished (the last one, or an earlier one that began
    lower), and what set its start: the ADD or a look-up. read: the message, found by the drain."""

    add: Row
    start: Row
    read: Row
    marker: Row


class Lane(Settled):
    """At stake where the last incarnation still works."""

    def is_at_stake(self, last: Incarnation) -> bool:
        add = last.add
        if add is None or not self.lives(last):
            return False
        name = self.lane.name(add.client)
        return not self.context.is_of_an_old_life(name, self.lane.group, add.begin, self.now)

    def is_done(self, offset: int) -> bool:
        return offset in self.finished or offset in self.worked

    def counts_from(self, last: Incarnation) -> int:
        return min(last.start or 0, self._first(last).start or 0)

    def _first(self, last: Incarnation) -> Incarnation:
        """The incarnation with the lowest start, where all of them are recorded and no message is nobody's."""
        if not self.context.info.closed_world or self.config.consume_from != "first":
            return last
        known = [
            each
            for each in self.incarnations.values()
            if each.add is not None and each.start is not None and not each.asked
        ]
        return min([last, *known], key=lambda each: each.start or 0)

    def owes(self, last: Incarnation, read: int, marker: int) -> None:
        offset = int(self.lane.digest.rows.offset[read])
        # A look-up that is answered while the queue is read may say that an incarnation begins behind the message.
        mine = last if offset >= (last.start or 0) else self._first(last)
        if mine.add is None or mine.start_row is None or offset < (mine.start or 0):
            return
        roles = {
            "add": mine.add.place,
            "start": mine.start_row.place,
            "read": read,
            "marker": marker,
        }
        self.findings.shown(NeverFinished, roles, certain=self.rests_for_certain)


judge = each_settled_lane(Lane)


def explain(found: NeverFinished) -> str:
    add, start, read, marker = found.add, found.start, found.read, found.marker
    return (
        f"message {read.message_id} at offset {read.queue_offset} of {read.queue} was never finished by {add.group}, "
        f"although {who(add)} had started at {start_of(start)} at {at(add)}, the lane has an owner, and all was healed "
        f"and quiet by {at(marker)}"
    )
