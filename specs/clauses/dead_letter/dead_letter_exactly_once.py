"""A message given up by one incarnation, with a send that was answered at once, is dead-lettered exactly once.

Claimed where every dead letter of the message in its group belongs to one incarnation, was acknowledged (and not
stored weakly, with a code that says that it may be lost with its broker), and was its first try; where the message was
not consumed in manual mode, nor in a mode of which nobody tells (a ROLLBACK replays dead-lettered messages as well),
and where it lies at one place only (a send that reached the log twice made two messages, and each is given up).
Otherwise it is *at least* once. Where frames may come twice, so may a dead letter in its topic. Two dead letters of one
message are too many, and so are two places in the dead-letter topic that hold it. Where the consumer takes several
messages per call, only what was given up once is looked at: that a batch which is tried again is not given up again is
DLQ-10's matter. Needs to know every consumer: in an open world what is found is at most possible. Decided when the
history is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.dead_letter.batches import is_acknowledged
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import AUTO_MODE, DEAD_LETTER_SENT, IN_PLACE, NO_FRAME_TWICE, Premise
from specs.clauses.rows import is_manual, may_be_manual
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import DLQ_PREFIX, Key, Kind, Outcome, Party

ID = "DLQ-2"
TITLE = "a dead letter exactly once"
STATEMENT = "A message that one incarnation gives up reaches the dead letters exactly once."
PARTY = Party.PAIR
KEY = Key.MESSAGE
PREMISE = (
    IN_PLACE,
    AUTO_MODE,
    DEAD_LETTER_SENT,
    Premise(
        "one incarnation",
        "no other incarnation gave the message up, and each send was its first try",
    ),
    Premise("one place", "the message was given up at one offset of one queue only"),
    NO_FRAME_TWICE,
)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ, Kind.DELIVER})
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DEAD_LETTER})
CONCLUDES_FROM_ABSENCE = True


def wants(row: Row) -> bool:
    """Of what is read only dead letters, of what is delivered only calls that may be manual ones."""
    if row.kind is Kind.READ:
        return (row.topic or "").startswith(DLQ_PREFIX)
    return row.kind is not Kind.DELIVER or may_be_manual(row)


def origin_of(row: Row) -> tuple[str | int | None, ...]:
    """Who gave the message up, and where it lies."""
    return (
        row.client_id,
        row.process,
        row.incarnation,
        row.topic,
        row.broker,
        row.queue_id,
        row.queue_offset,
    )


@dataclass(frozen=True, slots=True)
class TwiceDead(Finding):
    """rows: two dead letters, or the only one and two places where it was read."""

    evidence: tuple[Row, ...]


class _Group:
    """What one group did with the message."""

    __slots__ = ("reads", "rows", "spoiled")

    def __init__(self) -> None:
        self.rows: list[Row] = []  # its dead letters, at most two
        self.reads: list[Row] = []  # one row for each place, at most two
        self.spoiled = False


class MessageJudge(Judge):
    """Remembers two dead letters of a message, and two places where it was read, for each group."""

    __slots__ = ("groups",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.groups: dict[str, _Group] = {}

    def _group(self, name: str) -> _Group:
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = _Group()
        return found

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ:
            return NOTHING
        group = self._group(row.group or "")
        is_by_hand = row.kind is Kind.DELIVER or is_manual(row)
        as_promised = not is_by_hand and is_acknowledged(row) and row.attempt in (None, 1)
        if not as_promised or (group.rows and not self._are_of_one(group.rows[0], row)):
            group.spoiled = True
        elif len(group.rows) < 2:
            group.rows.append(row)
        return NOTHING

    def _are_of_one(self, first: Row, row: Row) -> bool:
        """Did one incarnation send both? The next process of its client may number its incarnations anew."""
        anew = self.context.is_of_an_old_life(row.client_id, row.group, first)
        return origin_of(first) == origin_of(row) and not anew

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ and row.outcome is Outcome.OK:
            reads = self._group((row.topic or "")[len(DLQ_PREFIX) :]).reads
            places = {(each.broker, each.queue_id, each.queue_offset) for each in reads}
            if len(reads) < 2 and (row.broker, row.queue_id, row.queue_offset) not in places:
                reads.append(row)
        return NOTHING

    def finish(self) -> Iterable[Finding]:
        found: list[Finding] = []
        for group in self.groups.values():
            if group.spoiled or not group.rows or not (group.reads or len(group.rows) > 1):
                continue
            if len(group.rows) > 1 and self.config.batch > 1:
                continue
            self.opportunities += 1
            if len(group.rows) > 1:
                found.append(TwiceDead(tuple(group.rows)))
            elif len(group.reads) > 1 and self.context.frames_twice is None:
                found.append(TwiceDead((*group.rows, *group.reads)))
        return found


judge = MessageJudge


def explain(found: TwiceDead) -> str:
    first = found.evidence[0]
    if len(found.evidence) > 2:
        places = " and ".join(
            f"offset {row.queue_offset} of {row.queue}" for row in found.evidence[1:]
        )
        return f"{who(first)} gave up message {first.source_id} once, at {at(first)}, but it lies at {places}"
    second = found.evidence[1]
    return (
        f"{who(second)} gave up message {second.source_id} again at {at(second)}, though the dead letter that the same "
        f"incarnation had sent at {at(first)} was acknowledged"
    )
