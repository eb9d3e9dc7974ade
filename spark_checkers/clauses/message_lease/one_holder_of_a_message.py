"""PML-1 over columns: of messages that were handed out more than once, the hand-outs to another member."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.message_leases import COLUMNS, Message, Request, kernel


class Holders(Message):
    def again(self, before: Request, row: Request, meets: bool) -> None:
        if before.client == row.client:
            return
        self.stakes += 1
        if meets:
            self.findings.violation([before.place, row.place])


TWIN = Twin("PML-1", COLUMNS, kernel(Holders))
find = TWIN.find


# ---- what breaks the clause, planted


def second_holder(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: planting.handed_again(trace, a, STRANGER), row)


def put_back_before(trace: Trace) -> Changes:
    for row in planting.handed_out_once(trace):
        yield partial(lambda a: planting.handed_again(trace, a, STRANGER, released=True), row)


DEFECTS = (
    Mutant(
        "second-holder",
        "PML-1",
        "a message is handed to a second member while the first one has it",
        second_holder,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "second-holder-after-release",
        None,
        "a message is handed to a second member once the first one has put it back",
        put_back_before,
        generated=False,
        consumed=LEASED,
    ),
)
