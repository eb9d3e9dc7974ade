"""The messages of one batch lie in their queue one behind the other, in their order, with nothing between them.

A batch is one request, and its rows share their `op_id`; `value` says a message's place in it, from 0. Decided by
reading the queue: where a message of a batch was read at an offset, and another message than the batch's next one at
the offset behind it, the batch is not contiguous. A batch that a retry, or a frame that came twice, stored a second
time is contiguous each time. Whether all of a batch is there is the business of SND-1. After a crash of the broker
the end of its log may be cut, so batches sent before that are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import BROKER_LIVES, NOTHING, Context, Finding, Judge, at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-5"
TITLE = "a batch is contiguous"
STATEMENT = "The messages of one batch lie in their queue in their order, with nothing between them."
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (BROKER_LIVES,)
SOURCES = ("docs/sources.md#send",)
KINDS = frozenset({Kind.SEND, Kind.READ})
NEEDS = frozenset({Kind.READ, Kind.SEND})


@dataclass(frozen=True, slots=True)
class Interrupted(Finding):
    part: Row
    next_part: Row
    read: Row
    other: Row


class QueueJudge(Judge):
    """Remembers the messages of batches sent to the queue, and the message read last."""

    __slots__ = ("by_id", "last", "parts")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.by_id: dict[str, Row] = {}
        self.parts: dict[tuple[int, int], Row] = {}  # by operation and place
        self.last: Row | None = None

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND and row.value is not None and row.message_id is not None:
            self.by_id.setdefault(row.message_id, row)
            self.parts.setdefault((row.op_id, row.value), row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.READ or row.queue_offset is None or row.outcome is not Outcome.OK:
            return NOTHING
        last, self.last = self.last, row
        if last is None or last.message_id is None or last.queue_offset != row.queue_offset - 1:
            return NOTHING
        part = self.by_id.get(last.message_id)
        if part is None or part.value is None or self.context.broker_died_since(part.broker, part):
            return NOTHING
        next_part = self.parts.get((part.op_id, part.value + 1))
        if next_part is None or row.message_id is None:
            return NOTHING
        self.opportunities += 1
        return NOTHING if row.message_id == next_part.message_id else (Interrupted(part, next_part, last, row),)


judge = QueueJudge


def explain(found: Interrupted) -> str:
    part, next_part, read, other = found.part, found.next_part, found.read, found.other
    return (
        f"behind message {part.message_id} of the batch that {who(part)} sent at {at(part)}, which lies at offset "
        f"{read.queue_offset} of {read.queue}, message {other.message_id} was read at {at(other)} and not the batch's "
        f"next one, {next_part.message_id}"
    )
