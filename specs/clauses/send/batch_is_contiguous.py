"""The messages of one batch lie in their queue one behind the other, in their order, with nothing between them.

A batch is one request, and its rows share their `op_id`; `value` says a message's place in it, from 0. Decided by
reading the queue: where a message of a batch was read at an offset, and another message than the batch's next one at
the offset behind it, the batch is not contiguous. A batch that a retry, or a frame that came twice, stored a second
time is contiguous each time. A batch that was certainly refused is not there; and where a message was also sent
singly, before or after, nothing is said about what lies behind it. A message that was sent in several batches may lie
behind its neighbour of each, or at the end of one. Whether all of a batch is there is the business of SND-1. After a
death of the broker the end of its log may be cut, so batches sent before that are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES
from specs.clauses.stored import is_half, is_refused
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-5"
TITLE = "a batch is contiguous"
STATEMENT = (
    "The messages of one batch lie in their queue in their order, with nothing between them."
)
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (BROKER_LIVES,)
SOURCES = ("docs/sources.md#send",)
STAKES = (Stake(Trait.BATCH),)
KINDS = frozenset({Kind.SEND, Kind.READ})
NEEDS = frozenset({Kind.READ, Kind.SEND})


def wants(row: Row) -> bool:
    """A half message is none of a batch, and lies elsewhere first."""
    return not (row.kind is Kind.SEND and is_half(row))


@dataclass(frozen=True, slots=True)
class Interrupted(Finding):
    part: Row
    next_part: Row
    read: Row
    other: Row


class QueueJudge(Judge):
    """Remembers the messages of batches sent to the queue, and the message read last."""

    __slots__ = ("last", "lone", "parts", "places")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.parts: dict[
            str, list[Row]
        ] = {}  # by message: its sends within batches that may be stored
        self.lone: set[str] = set()  # messages of these that may be stored by a send of their own
        self.places: dict[tuple[int, int], Row] = {}  # by operation and place
        self.last: Row | None = None

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND and row.message_id is not None and not is_refused(row):
            if row.value is None:
                self.lone.add(row.message_id)
            else:
                self.parts.setdefault(row.message_id, []).append(row)
                self.places.setdefault((row.op_id, row.value), row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.READ or row.queue_offset is None or row.outcome is not Outcome.OK:
            return NOTHING
        last, self.last = self.last, row
        if last is None or last.message_id is None or last.queue_offset != row.queue_offset - 1:
            return NOTHING
        parts = self.parts.get(last.message_id, ())
        if not parts or row.message_id is None or last.message_id in self.lone:
            return NOTHING
        if any(self.context.broker_died_since(part.broker, part) for part in parts):
            return NOTHING
        behind = [self.places.get((part.op_id, (part.value or 0) + 1)) for part in parts]
        if behind[0] is None or None in behind:
            return NOTHING
        self.opportunities += 1
        known = {part.message_id for part in behind if part is not None}
        return (
            NOTHING if row.message_id in known else (Interrupted(parts[0], behind[0], last, row),)
        )


judge = QueueJudge


def explain(found: Interrupted) -> str:
    part, next_part, read, other = found.part, found.next_part, found.read, found.other
    return (
        f"behind message {part.message_id} of the batch that {who(part)} sent at {at(part)}, which lies at offset "
        f"{read.queue_offset} of {read.queue}, message {other.message_id} was read at {at(other)} and not the batch's "
        f"next one, {next_part.message_id}"
    )
