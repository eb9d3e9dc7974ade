"""LSE-4 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.grants import RELEASED, LastGrantLane, answers, refuses
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Op, machine_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome

NEVER_GRANTED = "never-granted"


class Lane(LastGrantLane):
    """Wants every lane granted that is free for the asker.

    early: answers to members before any grant of the run was seen; refused: the first refusal among them, with the
    seq of the asker's join. They count only if nobody turns out to have been at work before the history begins.
    """

    __slots__ = ("early", "refused", "whole")

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
