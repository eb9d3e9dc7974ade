"""PML-3 over columns: of messages that were handed out more than once, requests under the lease before the last."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.message_leases import COLUMNS, Message, Request, kernel
from specs.facts.rows import Rows
from specs.facts.segments import NO_TEXT
from specs.vocabulary import Kind, Outcome


class Passed(Message):
    """first: the hand-out before the last, where it certainly was before. late: requests under it, by their begin."""

    def __init__(self, rows: Rows, findings: Findings, place: int) -> None:
        super().__init__(rows, findings, place)
        self.first: Request | None = None
        self.late: dict[int, tuple[Request, Request]] = {}

    def begins(self, row: Request, now: int) -> None:
        first, second = self.first, self.last
        may_be_late = row.kind is not Kind.RECEIVE and row.lease != NO_TEXT
        may_be_late = may_be_late and not self.is_over(now)
        if may_be_late and first and second and first.lease == row.lease != second.lease:
            self.late[row.begin] = first, second
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
        is_last = self.last is not None and self.last.place == second.place
        still = is_last and not self.is_over(now)
        if late.outcome not in (Outcome.OK, Outcome.REFUSED) or not still:
            return
        if self.lives(second, self.alive_until, late.over_us, now):
            self.stakes += 1
            if late.outcome is Outcome.OK:
                self.findings.violation([first.place, second.place, late.place])

    def again(self, before: Request, row: Request, meets: bool) -> None:
        in_turn = before.end < row.begin and before.lease != NO_TEXT
        self.first = before if in_turn else None


TWIN = Twin("PML-3", COLUMNS, kernel(Passed))
find = TWIN.find


# ---- what breaks the clause, planted


def late_one_taken(trace: Trace) -> Changes:
    for before, row in planting.passed_on(trace):
        yield partial(lambda a, b: planting.late_request(trace, a, b, Outcome.OK), before, row)


def late_one_refused(trace: Trace) -> Changes:
    for before, row in planting.passed_on(trace):
        yield partial(lambda a, b: planting.late_request(trace, a, b, Outcome.REFUSED), before, row)


DEFECTS = (
    Mutant(
        "late-acknowledgement-taken",
        "PML-3",
        "an acknowledgement is accepted under a lease that has passed on",
        late_one_taken,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "late-acknowledgement-refused",
        None,
        "an acknowledgement under a lease that has passed on is refused",
        late_one_refused,
        generated=False,
        consumed=LEASED,
    ),
)
