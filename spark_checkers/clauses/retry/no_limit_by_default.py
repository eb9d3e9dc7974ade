"""RTY-8 over columns: nothing but dead letters is looked at, in runs without a limit."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    ends_as,
    machine_kernel,
)
from specs.facts.segments import NEVER, NO_TEXT
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome


class Lane(Machine):
    """Of each incarnation the messages of its last call, and those that are not finished."""

    ENDS = ends_as([Kind.DELIVER], LISTENER_SUSPENDS)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.known: dict[int, dict[int, Op]] = {}
        self.call: dict[int, int] = {}
        # What is given up may be any message of a stretch; where nothing is, nobody asks what was delivered.
        self.no_letters = Kind.DEAD_LETTER not in lane.kinds

    def takes(self, stretch: Stretch) -> bool:
        return self.no_letters

    def _deliver(self, op: Op) -> None:
        known = self.known.setdefault(op.incarnation, {})
        if self.call.get(op.incarnation) != op.op:
            self.call[op.incarnation] = op.op
            ended = any(_finishes(before) for before in known.values())
            known = self.known[op.incarnation] = {
                offset: before
                for offset, before in known.items()
                if asks_again(before) or (_is_taken(before) and not ended)
            }
        known[op.offset] = op

    def begins(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            self.known.pop(op.incarnation, None)
        elif op.offset < 0:
            return
        elif op.kind is Kind.DELIVER:
            self._deliver(op)
        else:
            last = self.known.get(op.incarnation, {}).get(op.offset)
            if last is not None:
                self.stakes += last.outcome not in LISTENER_SUSPENDS or last.end >= NEVER
                self.found(last, op)

    def ends(self, op: Op) -> None:
        if (
            op.kind is Kind.DELIVER
            and op.incarnation != NO_TEXT
            and op.outcome in LISTENER_SUSPENDS
        ):
            self.stakes += 1


def _finishes(op: Op) -> bool:
    """Does the call finish its message, and with it whatever was taken before?"""
    by_itself = op.outcome in (Outcome.SUCCESS, Outcome.ROLLBACK) and not op.manual
    return op.outcome is Outcome.COMMIT or by_itself


def _is_taken(op: Op) -> bool:
    return op.manual and op.outcome is Outcome.SUCCESS


TWIN = Twin(
    "RTY-8",
    OP_COLUMNS,
    machine_kernel(Lane, (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD), lease=False),
)
find = TWIN.find


# ---- what breaks the clause, planted


def given_up_without_limit(trace: Trace) -> Changes:
    for _last, letter, after in planting.given_up(trace):
        about = (letter.seq_begin, after.seq_begin)
        yield partial(lambda a: Planted(trace.rows, a), about)


DEFECTS = (
    Mutant(
        "no-limit",
        "RTY-8",
        "the run had no limit",
        given_up_without_limit,
        config={"max_reconsume_times": -1},
    ),
)
