"""A new owner starts at or before the lowest message that nobody of the group has finished.

Where an offset was stored for the lane, an incarnation's first delivery must not lie beyond an unfinished message at
or above that offset. The stored offset is shown by a look-up that was answered with it or by a commit that was
answered; it must have been stored before the client looked it up for this incarnation (look-up and add may lie apart),
and a crash of the broker may have lost it. Of several the highest counts: it claims least. In a closed world only what
somebody committed can be stored: an answer beyond every commit shows that something is stored, and the highest commit
before it says how much (whether such an answer may be given is CMT-9's to say). What *finished* and *known* mean, and
what is remembered of a queue, is said in `specs.clauses.progress`: of a batch that was sent the first message is known
by its answer, the others only once they are delivered, so that who skips one of those unseen is not found here. A
group that is seen on the queue only after every other has finished a message is not judged by the SEND of that
message. Nobody owes what the broker has removed on purpose: below the minimum that it announced before the delivery
nothing is unfinished. Nor what its answer to a pull of the incarnation passed over, which told it to go on further
ahead than it had asked for.

Where a server keeps what a consumer held and gives it to the next one, this is half of the promise that redeliveries
come first: the new owner's first message is the lowest of them. That the others follow in their order before anything
new does is ORD-2's, since they are first deliveries of the new owner; that none is left out is LIV-1's. So no clause of
its own says it (docs/decisions/0016-redeliveries-come-first.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import goes_ahead
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, NO_FILTER, NO_RESET, NOT_REMOVED, ORDERLY
from specs.clauses.progress import PROGRESS_KINDS, GroupProgress, QueueProgress
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-4"
TITLE = "a new owner starts at or before the lowest unfinished message"
STATEMENT = (
    "Where an offset was stored, a new owner starts at or before the lowest unfinished message."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER, BROKER_LIVES, NOT_REMOVED)
SOURCES = ("docs/sources.md#start-matrix", "docs/sources.md#offsets")
KINDS = PROGRESS_KINDS | {Kind.COMMIT, Kind.PULL}
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL})
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True


def wants(row: Row) -> bool:
    """Of pulls only those that were told to go on further ahead."""
    return row.kind is not Kind.PULL or goes_ahead(row)


@dataclass(frozen=True, slots=True)
class StartedBeyond(Finding):
    """stored: what shows that an offset was stored; named: the highest commit, where that is a look-up's answer beyond
    it; message: what shows that `offset` holds a message; drop: why that is not finished, where its call ended well."""

    stored: Row
    named: Row | None
    message: Row
    drop: Row | None
    first: Row
    offset: int


@dataclass(frozen=True, slots=True)
class Stored:
    """What shows that an offset is stored. named: the highest commit, where the answer lies beyond every one."""

    row: Row
    named: Row | None = None

    @property
    def offset(self) -> int:
        return (self.row if self.named is None else self.named).value or 0


class QueueJudge(Judge):
    """Keeps the progress of one queue's groups, and for each group what is known of its stored offset."""

    __slots__ = ("looked", "named", "passed_over", "progress", "stored")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.progress = QueueProgress(self.context)
        self.stored: dict[str, Stored] = {}  # group → the highest stored offset known
        self.looked: dict[
            tuple[str, str], Stored | None
        ] = {}  # (group, client) → what was known when it looked
        self.named: dict[str, Row] = {}  # group → the highest commit, whatever came of it
        # By group, and incarnation (or client, where a pull names none): what its pulls were told to pass over.
        self.passed_over: dict[tuple[str | None, ...], Intervals] = {}

    def _better(self, known: Stored | None, other: Stored | None) -> Stored | None:
        """The one with the higher offset; one from before a crash of the broker counts for nothing."""
        if known is None or self.context.broker_died_since(known.row.broker, known.row):
            return other
        if other is None or self.context.broker_died_since(other.row.broker, other.row):
            return known
        return known if other.offset <= known.offset else other

    def begins(self, row: Row) -> Iterable[Finding]:
        kind = row.kind
        if kind is Kind.COMMIT:
            highest = self.named.get(row.group or "")
            value = row.value
            if value is not None and (highest is None or value > (highest.value or 0)):
                self.named[row.group or ""] = row
            return NOTHING
        found: Iterable[Finding] = NOTHING
        if kind is Kind.DELIVER:
            group = self.progress.group(row)
            if row.incarnation is not None and row.queue_offset is not None:
                mine = group.incarnation(row.incarnation)
                if not mine.delivers and not mine.void and not group.was_reset:
                    stored = self.stored.get(row.group or "") if mine.add is None else mine.proof
                    found = self._first_delivery(group, stored, row, row.queue_offset)
        elif kind is Kind.FETCH_OFFSET:
            self.looked[(row.group or "", row.client_id or "")] = self.stored.get(row.group or "")
        if kind is Kind.PULL:
            return NOTHING
        self.progress.begins(row)
        if kind is Kind.ADD and row.incarnation is not None:
            for by in _names_of(row):
                self.passed_over.pop(by, None)
            mine = self.progress.group(row).incarnation(row.incarnation)
            who_looked = (row.group or "", row.client_id or "")
            if who_looked in self.looked:
                mine.proof = self.looked.pop(who_looked)
            else:
                mine.proof = self.stored.get(row.group or "")
        return found

    def _first_delivery(
        self, group: GroupProgress, known: Stored | None, row: Row, first: int
    ) -> Iterable[Finding]:
        if known is None or self.context.broker_died_since(row.broker, known.row):
            return NOTHING
        stored, named = known.row, known.named
        self.opportunities += 1
        kept = self.context.kept_from.get(row.queue, 0)
        told = [self.passed_over[by] for by in _names_of(row) if by in self.passed_over]
        for offset in group.owed(max(known.offset, kept), first):
            if any(offset in each for each in told):
                continue
            rows = group.unfinished.get(offset)
            if rows:
                return (
                    StartedBeyond(stored, named, rows[-1], group.drop_of(rows[-1]), row, offset),
                )
            sent = self.progress.send_rows.get(offset)
            if sent is not None:
                return (StartedBeyond(stored, named, sent, None, row, offset),)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        kind = row.kind
        if kind is Kind.PULL:
            by = _names_of(row)[row.incarnation is None]
            told = self.passed_over.setdefault(by, Intervals())
            told.add(row.queue_offset or 0, row.value or 0)
            return NOTHING
        if kind is Kind.COMMIT:
            if row.outcome is Outcome.OK and row.value is not None and row.value >= 0:
                self._is_stored(Stored(row))
            return NOTHING
        self.progress.ends(row)
        if (
            kind is Kind.FETCH_OFFSET
            and row.outcome is Outcome.OK
            and row.value is not None
            and row.value >= 0
        ):
            stored = self._answered(row)
            self._is_stored(stored)
            looked = (row.group or "", row.client_id or "")
            if looked in self.looked:
                self.looked[looked] = self._better(self.looked[looked], stored)
            if row.incarnation is not None:
                mine = self.progress.group(row).incarnation(row.incarnation)
                mine.proof = self._better(mine.proof, stored)
        return NOTHING

    def _answered(self, row: Row) -> Stored:
        """What the answer to a look-up shows."""
        named = self.named.get(row.group or "") if self.context.info.closed_world else None
        beyond = named is not None and (named.value or 0) < (row.value or 0)
        return Stored(row, named if beyond else None)

    def _is_stored(self, stored: Stored) -> None:
        best = self._better(self.stored.get(stored.row.group or ""), stored)
        if best is not None:
            self.stored[stored.row.group or ""] = best


def _names_of(row: Row) -> tuple[tuple[str | None, ...], tuple[str | None, ...]]:
    """Under which name a pull of the row's incarnation is found, and one of its client that names none."""
    return (row.group, row.incarnation), (row.group, row.client_id, "")


judge = QueueJudge


def explain(found: StartedBeyond) -> str:
    stored, message, first = found.stored, found.message, found.first
    known = (
        f"sent at {at(message)}"
        if message.kind is Kind.SEND
        else f"begun by {who(message)} at {at(message)}"
    )
    seen = f"{stored.value} had been stored (seen at {at(stored)})"
    if found.named is not None:
        seen = f"no more than {found.named.value} had ever been committed ({stored.value} was told at {at(stored)})"
    return (
        f"{who(first)} began {first.lane} at offset {first.queue_offset} at {at(first)}, although nobody of the group "
        f"had finished offset {found.offset} ({known}) and {seen}"
    )
