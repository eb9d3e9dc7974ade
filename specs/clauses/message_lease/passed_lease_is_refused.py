"""What is asked under a lease that has passed to another hand-out is refused.

Judged when an acknowledgement, a release or a renewal ends that named its lease, was begun after the message had been
handed out anew, and was answered; as long as the new lease certainly lives and its holder has not settled the message:
what was finished meanwhile may be acknowledged once more. Says nothing of requests that nobody answers, nor of ones
under a lease that ran out while nobody else was handed the message.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.message_leases import CONNECTED, OF_LEASES, HandOuts, Names
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, NOT_MOVED
from specs.clauses.rows import ended_before
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "PML-3"
TITLE = "a lease that has passed on is refused"
STATEMENT = (
    "An acknowledgement, a release or a renewal under a lease of a message that has passed to another hand-out is "
    "refused."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, CONNECTED, NOT_MOVED)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = OF_LEASES
NEEDS = frozenset({Kind.RECEIVE, Kind.ACK})
ANSWERS = frozenset({Outcome.OK, Outcome.REFUSED})


@dataclass(frozen=True, slots=True)
class LateOneTaken(Finding):
    """first: the lease that passed on. second: the one that lives. late: the request under the first."""

    first: Row
    second: Row
    late: Row


class LaneJudge(Judge):
    """passed: of each message the hand-out before the last, where that certainly came after it.

    late: requests under that lease, by their begin, that were made while the last one lived.
    """

    __slots__ = ("handed", "late", "names", "passed")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.handed = HandOuts(context)
        self.names = Names()
        self.passed: dict[int, Row] = {}
        self.late: dict[int, tuple[Row, Row]] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        row = self.names.begins(row)
        if row.kind is not Kind.RECEIVE and self._is_late(row):
            first = self.passed[row.queue_offset or 0]
            self.late[row.seq_begin] = (first, self.handed.last[row.queue_offset or 0].row)
            return NOTHING  # the present holder's lease is judged at the answer
        self.handed.asked(row)
        return NOTHING

    def _is_late(self, row: Row) -> bool:
        offset = row.queue_offset
        if offset is None or row.lease_id is None or offset not in self.handed.last:
            return False
        held, first = self.handed.last[offset], self.passed.get(offset)
        return (
            first is not None
            and first.lease_id == row.lease_id != held.row.lease_id
            and not self.handed.is_over(held)
        )

    def ends(self, row: Row) -> Iterable[Finding]:
        row = self.names.ends(row)
        if row.kind is Kind.RECEIVE:
            before = self.handed.handed_out(row)
            if before is not None and row.queue_offset is not None:
                self._passes(before.row, row)
            return NOTHING
        pair = self.late.pop(row.seq_begin, None)
        taken = () if pair is None else self._judged(*pair, row)
        if pair is not None:
            self.handed.asked(row)
        self.handed.answered(row)
        if row.kind is Kind.ACK and row.outcome is Outcome.OK:
            self.passed.pop(row.queue_offset or 0, None)
        return taken

    def _judged(self, first: Row, second: Row, late: Row) -> Iterable[Finding]:
        """A request under the first lease ended. Was the second one's holder still at work?"""
        held = self.handed.last.get(late.queue_offset or 0)
        if held is None or held.row is not second or late.outcome not in ANSWERS:
            return NOTHING
        if not self.handed.lives(held, late):
            return NOTHING
        self.opportunities += 1
        return (LateOneTaken(first, second, late),) if late.outcome is Outcome.OK else NOTHING

    def _passes(self, before: Row, row: Row) -> None:
        offset = row.queue_offset or 0
        if ended_before(before, row) and before.lease_id is not None:
            self.passed[offset] = before
        else:
            self.passed.pop(offset, None)


judge = LaneJudge


def explain(found: LateOneTaken) -> str:
    first, second, late = found.first, found.second, found.late
    return (
        f"{who(late)} asked to {late.kind.value} offset {late.queue_offset} of {late.lane} at {at(late)} under the "
        f"lease of {at(first)}, and it was accepted, though {who(second)} had been handed the message at {at(second)} "
        f"and held it still"
    )
