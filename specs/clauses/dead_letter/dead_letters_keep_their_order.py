"""Messages of one lane that were given up one after the other lie in that order in a dead-letter queue.

A dead letter that was acknowledged before another was sent has the smaller offset, where both lie in the same
dead-letter queue. Claimed for messages of one lane of a group, each with one dead letter, its first try and
acknowledged, and found in one place: a try before it, perhaps before the history begins, may have been stored at any
time, and in an open world somebody else's. A broker that makes dead letters wait for their delay levels can't promise
it. Decided when the history is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import ORDERLY, Premise
from specs.clauses.rows import ended_before
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import DLQ_PREFIX, Key, Kind, Outcome, Party

ID = "DLQ-4"
TITLE = "dead letters keep their order"
STATEMENT = (
    "In a dead-letter queue the messages of one lane lie in the order in which they were given up."
)
PARTY = Party.PAIR
KEY = Key.GROUP
PREMISE = (
    ORDERLY,
    Premise(
        "one dead letter",
        "one dead letter of the message was sent in its group, once, and it was acknowledged",
    ),
)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ})
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.READ})
CONCLUDES_FROM_ABSENCE = True


def wants(row: Row) -> bool:
    """Of what is read, only dead letters."""
    return row.kind is not Kind.READ or (row.topic or "").startswith(DLQ_PREFIX)


@dataclass(frozen=True, slots=True)
class OutOfOrder(Finding):
    """The first was given up before the second, and lies behind it."""

    first: Row
    second: Row
    second_read: Row
    first_read: Row


Place = tuple[str | None, int | None, int | None]


class GroupJudge(Judge):
    """Remembers the dead letters of a group, and where each was read."""

    __slots__ = ("read", "sent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: dict[str, list[Row]] = {}  # by message, at most two
        self.read: dict[
            str, dict[Place, Row]
        ] = {}  # by message, the first read of each place, at most two places

    def begins(self, row: Row) -> Iterable[Finding]:
        source = row.source_id
        if row.kind is Kind.DEAD_LETTER and source is not None:
            sent = self.sent.setdefault(source, [])
            if len(sent) < 2:
                sent.append(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        source = row.source_id
        if (
            row.kind is Kind.READ
            and row.outcome is Outcome.OK
            and source is not None
            and row.queue_offset is not None
        ):
            places = self.read.setdefault(source, {})
            if len(places) < 2:
                places.setdefault((row.broker, row.queue_id, row.queue_offset), row)
        return NOTHING

    def finish(self) -> Iterable[Finding]:
        queues: dict[tuple[object, ...], list[tuple[Row, Row]]] = {}
        for source, sent in self.sent.items():
            places = self.read.get(source, {})
            if len(sent) != 1 or sent[0].attempt not in (None, 1):
                continue
            if len(places) == 1 and sent[0].outcome is Outcome.OK:
                (read,) = places.values()
                queues.setdefault((sent[0].lane, read.broker, read.queue_id), []).append(
                    (sent[0], read)
                )
        found: list[Finding] = []
        for pairs in queues.values():
            pairs.sort(key=lambda pair: (pair[1].queue_offset or 0, pair[0].seq_begin))
            latest: tuple[Row, Row] | None = (
                None  # of those that lie before, the one that was given up last
            )
            for letter, read in pairs:
                if latest is None:
                    latest = (letter, read)
                    continue
                self.opportunities += 1
                if ended_before(letter, latest[0]):
                    found.append(OutOfOrder(letter, latest[0], latest[1], read))
                if letter.seq_begin > latest[0].seq_begin:
                    latest = (letter, read)
        return found


judge = GroupJudge


def explain(found: OutOfOrder) -> str:
    first, second = found.first, found.second
    return (
        f"message {first.source_id}, given up by {who(first)} at {at(first)}, lies at offset "
        f"{found.first_read.queue_offset} of {found.first_read.queue}, behind message {second.source_id} at offset "
        f"{found.second_read.queue_offset}, which was given up only at {at(second)}"
    )
