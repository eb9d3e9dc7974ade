"""A new owner starts at or before the lowest message that nobody of the group has finished.

Where an offset was stored for the lane, an incarnation's first delivery must not lie beyond an unfinished message at
or above that offset. The stored offset is shown by a look-up that was answered with it or by a commit that was
answered; it must have been stored before the client looked it up for this incarnation (look-up and add may lie apart),
and a crash of the broker may have lost it. Of several the highest counts: it claims least. In a closed world only what
somebody committed can be stored: an answer beyond every commit shows that something is stored, and the highest commit
before it says how much (whether such an answer may be given is CMT-9's to say). What *finished* and *known* mean, and
what is remembered of a queue, is said in `specs.facts.progress`: of a batch that was sent the first message is known
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

from dataclasses import dataclass
from typing import NamedTuple

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, NO_FILTER, NO_RESET, NOT_REMOVED, ORDERLY
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Op, ends_as
from specs.facts.progress import PROGRESS_KINDS, Choice, Incarnation, Progress, each_queue
from specs.facts.segments import NO_TEXT, NONE
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
COLUMNS = (*OP_COLUMNS, "delay_level")


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


class Stored(NamedTuple):
    """An offset that was stored: the row that shows it, how high it can be at most, and the commit that says so."""

    op: Op
    offset: int
    named: Op | None


class Group(Progress):
    """One group on the queue, and what is known of its stored offset."""

    ENDS = Progress.ENDS | ends_as([Kind.COMMIT], [Outcome.OK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.stored: Stored | None = None
        self.looked: dict[int, Stored | None] = {}  # client → what was known when it looked
        self.named: Op | None = None  # the highest commit that was not refused
        self.added: dict[int, int] = {}  # by client: the begin of its last ADD
        digest = lane.digest
        told = digest.rows.told_ahead.get(int(digest.rows.lane[lane.place]))
        self.ahead = [] if told is None else digest.ops(told)

    def _better(self, known: Stored | None, other: Stored | None) -> Stored | None:
        """The one with the higher offset; one from before a crash of the broker counts for nothing."""
        if known is None or self.broker_died_since(known.op):
            return other
        if other is None or self.broker_died_since(other.op) or other.offset <= known.offset:
            return known
        return other

    def begins(self, op: Op) -> None:
        if op.kind is Kind.COMMIT:
            higher = self.named is None or op.value > self.named.value
            if op.value != NONE and higher:
                self.named = op
            return
        if op.kind is Kind.FETCH_OFFSET:
            self.looked[op.client] = self.stored
        super().begins(op)
        if op.kind is Kind.ADD and op.incarnation != NO_TEXT:
            self.added[op.client] = op.begin
            mine = self.incarnation(op.incarnation)
            mine.proof = self.looked.pop(op.client) if op.client in self.looked else self.stored

    def first_delivery(self, mine: Incarnation, op: Op) -> None:
        if mine.void or self.was_reset:
            return
        stored = self.stored if mine.add is None else mine.proof
        if stored is None or self.broker_died_since(stored.op):
            return
        roles = {"stored": stored.op, "named": stored.named, "first": op}
        self.stakes += 1
        choices: list[Choice] = []
        kept = self.context.kept_from(self.lane.digest.rows.queue_of(self.lane.place), self.now)
        told = self._passed_over(mine, op)
        for offset in self.owed(max(stored.offset, kept), op.offset):
            if any(pull.offset <= offset < pull.value for pull in told):
                continue
            rows = self.unfinished.get(offset)
            if rows:
                message = {"message": rows[-1], "drop": self.drop_of(rows[-1])}
                choices.append(Choice({**roles, **message}, offset))
                break
            if self.sends.row(self.queue, offset, self.now) is not None:
                choices.append(Choice({**roles, "drop": None}, offset, by_send=True))
                if not self.shared:
                    break
        self.claim(StartedBeyond, choices)

    def _passed_over(self, mine: Incarnation, op: Op) -> list[Op]:
        """The pulls of the incarnation, or of its client, that the broker told to go on further ahead."""
        found = []
        for pull in self.ahead:
            named = pull.incarnation != NO_TEXT
            is_own = pull.incarnation == op.incarnation if named else pull.client == op.client
            add = NONE if mine.add is None else mine.add.begin
            since = add if named else self.added.get(op.client, NONE)
            if is_own and since < pull.end < op.begin:
                found.append(pull)
        return found

    def ends(self, op: Op) -> None:
        if op.kind is Kind.COMMIT:
            if op.outcome is Outcome.OK and op.value >= 0:
                self.stored = self._better(self.stored, Stored(op, op.value, None))
            return
        super().ends(op)
        if op.kind is Kind.FETCH_OFFSET and op.outcome is Outcome.OK and op.value >= 0:
            told = Stored(op, op.value, None)
            if (
                self.context.info.closed_world
                and self.named is not None
                and self.named.value < op.value
            ):
                told = Stored(op, self.named.value, self.named)
            self.stored = self._better(self.stored, told)
            if op.client in self.looked:
                self.looked[op.client] = self._better(self.looked[op.client], told)
            if op.incarnation != NO_TEXT:
                mine = self.incarnation(op.incarnation)
                mine.proof = self._better(mine.proof, told)


judge = each_queue(Group, (*PROGRESS_KINDS, Kind.COMMIT))


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
