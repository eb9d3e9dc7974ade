"""What is asked under a lease that has passed to another hand-out is refused.

Judged when an acknowledgement, a release or a renewal ends that named its lease, was begun after the message had been
handed out anew, and was answered; as long as the new lease certainly lives and its holder has not settled the message:
what was finished meanwhile may be acknowledged once more. Says nothing of requests that nobody answers, nor of ones
under a lease that ran out while nobody else was handed the message.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, CONNECTED, NO_WALL_CLOCK_STEP, NOT_MOVED
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.message_leases import LEASE_COLUMNS, OF_LEASES, Message, Request, each_message
from specs.facts.rows import Rows
from specs.facts.segments import NO_TEXT
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
COLUMNS = LEASE_COLUMNS


@dataclass(frozen=True, slots=True)
class LateOneTaken(Finding):
    """first: the lease that passed on. second: the one that lives. late: the request under the first."""

    first: Row
    second: Row
    late: Row


class Passed(Message):
    """first: the hand-out before the last, where that certainly came after it.

    late: requests under its lease that were made while the last one lived, by their begin: both hand-outs.
    """

    def __init__(self, rows: Rows, findings: Findings, place: int) -> None:
        super().__init__(rows, findings, place)
        self.first: Request | None = None
        self.late: dict[int, tuple[Request, Request]] = {}

    def begins(self, row: Request, now: int) -> None:
        first, second = self.first, self.last
        names_a_lease = row.kind is not Kind.RECEIVE and row.lease != NO_TEXT
        lives = names_a_lease and not self.is_over(now)
        if lives and first and second and first.lease == row.lease != second.lease:
            self.late[row.begin] = first, second  # what it does to the last lease is judged first
        else:
            super().begins(row, now)

    def ends(self, row: Request, now: int) -> None:
        pair = self.late.pop(row.begin, None)
        if pair is not None:
            self._judge(*pair, row, now)
            super().begins(row, now)
        super().ends(row, now)
        if row.kind is Kind.ACK and row.outcome is Outcome.OK:
            self.first = None

    def _judge(self, first: Request, second: Request, late: Request, now: int) -> None:
        """A request under the first lease ended. Was the second one's holder still at work?"""
        is_last = self.last is not None and self.last.place == second.place
        still = is_last and not self.is_over(now)
        if late.outcome not in (Outcome.OK, Outcome.REFUSED) or not still:
            return
        if self.lives(second, self.alive_until, late.over_us, now):
            self.stakes += 1
            if late.outcome is Outcome.OK:
                roles = {"first": first.place, "second": second.place, "late": late.place}
                self.findings.shown(LateOneTaken, roles)

    def again(self, before: Request, row: Request, meets: bool) -> None:
        in_turn = before.end < row.begin and before.lease != NO_TEXT
        self.first = before if in_turn else None


judge = each_message(Passed)


def explain(found: LateOneTaken) -> str:
    first, second, late = found.first, found.second, found.late
    return (
        f"{who(late)} asked to {late.kind.value} offset {first.queue_offset} of {late.lane} at {at(late)} under the "
        f"lease of {at(first)}, and it was accepted, though {who(second)} had been handed the message at {at(second)} "
        f"and held it still"
    )
