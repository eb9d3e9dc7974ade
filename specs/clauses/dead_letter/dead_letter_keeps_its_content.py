"""A dead letter has the body, the tags and the sharding key of its message, and names the topic it came from.

Decided where a dead letter is read whole (its row has the body's hash), against the first row that shows the
original whole: its send or a delivery. Where one id was seen with different contents, nothing is said about it
(SND-10 does). The topic of origin is compared where the reader recorded it. A copy that a recorded consumer sent
also names the id of its origin; clients of the 4.9 line do not promise that. That it names none is known where the
run declares that reads are recorded; else only where the reader recorded what else the copy says of its origin, its
topic, and some dead letter of the run was read with the id of its origin. A log that has no such id anywhere may lack
the column: nobody may have looked.
In an open world a log may lack the one and have the other: that it names none is at most possible there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.rows import is_copy_topic
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import DLQ_PREFIX, Key, Kind, Outcome, Party

ID = "DLQ-5"
TITLE = "a dead letter keeps its content"
STATEMENT = "A dead letter keeps the body, the tags, the key and the topic of its message, and the id of its origin."
PARTY = Party.PAIR
KEY = Key.MESSAGE
PREMISE = ()
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.DEAD_LETTER, Kind.READ})
SETTINGS = ("dialect",)
NEEDS = frozenset({Kind.READ})
LOOKS_BACK = True

WITHOUT_ORIGIN_ID = "4.9"
"""The dialect whose clients need not name the origin's id."""


def wants(row: Row) -> bool:
    """Original messages and dead letters that are shown whole, and who gave a message up."""
    if row.kind is Kind.DEAD_LETTER:
        return True
    if row.body_hash is None:
        return False
    if row.kind is Kind.READ:
        return (row.topic or "").startswith(DLQ_PREFIX)
    return row.origin_id is None and not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class Changed(Finding):
    """original: as it was sent or delivered, or (where only the origin's id is missing) its dead letter's send.

    named: then, where the run does not declare its reads, a dead letter that was read with the id of its origin.
    """

    original: Row
    read: Row
    named: Row | None = None

    @property
    def timed(self) -> tuple[Row, ...]:
        """That anybody read such a dead letter counts, and not when."""
        return tuple(row for row in self.rows if row is not self.named)


def contents(row: Row) -> tuple[int | None, str | None, str | None]:
    return (row.body_hash, row.tags, row.sharding_key)


class MessageJudge(Judge):
    """Remembers the message as it was first seen, and the first acknowledged dead letter of each group.

    unnamed: dead letters that name no origin, until it is known whether anybody looked; each with its dead letter's
    send, and whether its content was known.
    """

    __slots__ = ("is_one", "original", "reads_are_declared", "sent", "unnamed")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.original: Row | None = None
        self.is_one = True
        self.sent: dict[str, Row] = {}
        self.unnamed: list[tuple[Row, Row, bool]] = []
        declared = context.info.records or {}
        self.reads_are_declared = any(Kind.READ in kinds for kinds in declared.values())

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind in (Kind.SEND, Kind.DELIVER):
            if self.original is None:
                self.original = row
            elif contents(self.original) != contents(row):
                self.is_one = False
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.outcome is not Outcome.OK:
            return NOTHING
        if row.kind is Kind.DEAD_LETTER:
            self.sent.setdefault(row.group or "", row)
        elif row.kind is Kind.READ:
            return self._read(row)
        return NOTHING

    def _read(self, row: Row) -> Iterable[Finding]:
        original = self.original if self.is_one else None
        if original is not None:
            self.opportunities += 1
            if contents(original) != contents(row) or row.view not in (None, original.topic):
                return (Changed(original, row),)
        sent = self.sent.get((row.topic or "")[len(DLQ_PREFIX) :])
        if sent is None or self.config.dialect == WITHOUT_ORIGIN_ID:
            return NOTHING
        if row.origin_id is None:
            if self.reads_are_declared or row.view is not None:
                self.unnamed.append((sent, row, original is not None))
            return NOTHING
        self.opportunities += original is None
        return NOTHING

    def finish(self) -> Iterable[Finding]:
        """Only now it is known whether any dead letter was read with the id of its origin."""
        certain, found = self.context.info.closed_world, list[Finding]()
        for sent, read, is_known in self.unnamed:
            named = None if self.reads_are_declared else self.context.named_origin.get(read.run)
            if named is not None or self.reads_are_declared:
                self.opportunities += not is_known
                found.append(Changed(sent, read, named, certain=certain))
        return found


judge = MessageJudge


def explain(found: Changed) -> str:
    original, read = found.original, found.read
    said = f"the dead letter of message {original.source_id} at offset {read.queue_offset} of {read.queue}"
    if original.kind is Kind.DEAD_LETTER:
        named = found.named
        other = (
            ""
            if named is None
            else f", as that at offset {named.queue_offset} of {named.queue} does"
        )
        return f"{said}, which {who(original)} sent at {at(original)}, does not name the id of its origin{other}"
    pairs = (
        ("body's hash", original.body_hash, read.body_hash),
        ("tags", original.tags, read.tags),
        ("sharding key", original.sharding_key, read.sharding_key),
        ("topic of origin", original.topic, read.view or original.topic),
    )
    other = "; ".join(
        f"{name} {now or 'none'} instead of {was or 'none'}"
        for name, was, now in pairs
        if was != now
    )
    return f"{said} has another content than at {at(original)}: {other}"
