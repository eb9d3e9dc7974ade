"""PML-2 over columns: of messages that were handed out more than once, every further hand-out."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.message_leases import COLUMNS, Message, Request, kernel


class Redelivered(Message):
    def again(self, before: Request, row: Request, meets: bool) -> None:
        self.stakes += 1
        if meets:
            self.findings.violation([before.place, row.place])


TWIN = Twin("PML-2", COLUMNS, kernel(Redelivered))
find = TWIN.find


# ---- what breaks the clause, planted


def handed_out_twice(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: planting.handed_again(trace, a, a.client_id or STRANGER), row)


def put_back_before(trace: Trace) -> Changes:
    for row in planting.handed_out_once(trace):
        yield partial(
            lambda a: planting.handed_again(trace, a, a.client_id or STRANGER, released=True), row
        )


DEFECTS = (
    Mutant(
        "handed-out-twice",
        "PML-2",
        "a message is handed once more to the member that has it",
        handed_out_twice,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "handed-out-after-release",
        None,
        "a message is handed once more to the member that has put it back",
        put_back_before,
        generated=False,
        consumed=LEASED,
    ),
)
