"""A send that was acknowledged before another began has the smaller offset, if both lie in one queue.

Whoever sent them. Sends that overlap may lie either way round, and a send without an answer says nothing. Compared
with the highest offset acknowledged before the send began; a crash of the broker since may have lost that one, and
its offset may be given again. Left out are delayed messages (they lie elsewhere first) and sends to the topics of
retries and dead letters (a broker may put them elsewhere).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import BROKER_LIVES, NOTHING, Context, Finding, Judge, at, is_copy_topic, who
from specs.history.row import Row
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
KINDS = frozenset({Kind.SEND})
NEEDS = frozenset({Kind.SEND})


def wants(row: Row) -> bool:
    """Sends that were acknowledged with their place in this queue."""
    if row.outcome is not Outcome.OK or row.queue_offset is None or row.seq_end is None:
        return False
    return not row.delay_level and not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class Overtook(Finding):
    earlier: Row
    later: Row


class QueueJudge(Judge):
    """Remembers the highest offset acknowledged, and for each send under way what that was when it began."""

    __slots__ = ("before", "highest")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.highest: Row | None = None
        self.before: dict[int, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if self.highest is not None:
            self.before[row.seq_begin] = self.highest
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        offset = row.queue_offset or 0
        earlier, highest = self.before.pop(row.seq_begin, None), self.highest
        lost = highest is None or self.context.broker_died_since(row.broker, highest)
        if lost or offset > (highest.queue_offset or 0 if highest is not None else 0):
            self.highest = row
        if earlier is None or self.context.broker_died_since(row.broker, earlier):
            return NOTHING
        self.opportunities += 1
        if offset > (earlier.queue_offset or 0):
            return NOTHING
        return (Overtook(earlier, row),)


judge = QueueJudge


def explain(found: Overtook) -> str:
    earlier, later = found.earlier, found.later
    return (
        f"message {later.message_id}, which {who(later)} began to send at {at(later)}, was given offset "
        f"{later.queue_offset} of {later.queue}, although message {earlier.message_id} (sent by {who(earlier)} at "
        f"{at(earlier)}) had been acknowledged with offset {earlier.queue_offset} before"
    )
