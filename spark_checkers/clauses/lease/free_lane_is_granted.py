"""LSE-4 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import STRANGER, Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.grants import RELEASED, LastGrantLane, answers, refuses
from specs.facts.lanes import OP_COLUMNS, LaneItems, Op, machine_kernel
from specs.facts.segments import NO_TEXT
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

NEVER_GRANTED = "never-granted"


class Lane(LastGrantLane):
    """Wants every lane granted that is free for the asker.

    early: answers to members before any grant of the run was seen; refused: the first refusal among them, with the
    seq of the asker's join. They count only if nobody turns out to have been at work before the history begins.
    """

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.early = 0
        self.refused: tuple[Op, int] | None = None
        self.whole = True

    def begins(self, op: Op) -> None:
        if not (op.kind is Kind.LOCK and refuses(op)):
            name = self.lane.name(op.client) if op.client != NO_TEXT else ""
            self.whole = (
                self.whole
                and self.context.member_since(self.lane.group, name, self.now) is not None
            )
        super().begins(op)

    def free(self, op: Op, grant: Op, why: str) -> None:
        self.at_stake(op, True, grant, self.last.released if why == RELEASED else None)

    def asked(self, op: Op) -> None:
        super().asked(op)
        if not answers(op):
            return
        what, shown = self.last.empty_since(op)
        granted = op.outcome is Outcome.OK
        if what == "join":
            self.early += 1
            if not granted and self.refused is None:
                self.refused = op, shown
        elif what:
            self.stakes += 1
            if not granted and what == "op":
                self.findings.violation([shown, op.place], name=NEVER_GRANTED)
            elif not granted:
                self.findings.violation([op.place], also=[shown], name=NEVER_GRANTED)

    def finish(self) -> None:
        if not self.whole:
            return
        self.stakes += self.early
        if self.refused is not None:
            op, joined = self.refused
            self.findings.violation([op.place], also=[joined], name=NEVER_GRANTED)


TWIN = Twin("LSE-4", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def refused_free_lane(trace: Trace) -> Changes:
    for rows in trace.lanes.values():
        last: Row | None = None
        for index, row in enumerate(rows):
            if row.kind is Kind.LOCK and row.outcome is not Outcome.REFUSED:
                last = row if row.outcome is Outcome.OK else None
            if (
                row.kind is not Kind.UNLOCK
                or last is None
                or last.client_id != row.client_id
                or row.seq_end is None
            ):
                continue
            after = next((each for each in rows[index + 1 :] if each.kind is Kind.LOCK), None)
            alone = after is None or after.seq_begin > row.seq_end
            if alone and (last.seq_end or 0) < row.seq_begin:
                yield partial(_refused, trace, last, row)


def _refused(trace: Trace, lock: Row, unlock: Row) -> Planted:
    # Only an answered unlock has certainly freed the lane for others; the owner itself is granted in any case.
    asker = STRANGER if unlock.outcome is Outcome.OK else lock.client_id
    refused = trace.another(
        lock,
        unlock,
        1,
        client_id=asker,
        process=asker,
        outcome=Outcome.REFUSED,
        lease_until_us=None,
        code=None,
    )
    return trace.with_more([refused], [lock.seq_begin, unlock.seq_begin])


DEFECTS = (
    Mutant(
        "refused-free-lane", "LSE-4", "a lane that was given back is refused", refused_free_lane
    ),
)
