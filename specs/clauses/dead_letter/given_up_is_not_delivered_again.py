"""Once its dead letter was acknowledged, the same incarnation does not deliver a message again, now or later.

Where a call held several messages, one of them that was given up may come again as long as another one of them has to,
since a batch is put back as a whole: not once all of them were given up (the others after their call had ended), nor
after the others have come again without it, even where they come with it later, nor after the batch succeeded: one row
of a call tells how all of it ended, and where none does it may have been put back. Where it comes again and is given up
in vain, it has to come as well. Claimed in auto mode (in manual mode a ROLLBACK replays what was given up as well):
where nobody says the mode, until any manual call, or one that may have been a manual ROLLBACK, since it ended so or
nobody knows how. Another incarnation may deliver it: it may not know. Says nothing where the dead letter was stored
weakly (it may be lost, and sent again), nor of a message of several whose batch is not in the history. Nothing is
remembered across an ADD, a reset, or a pull that was told to go on further back: what began before is of an earlier
life, and does not count when it ends.
"""

import numpy as np

from specs.clauses.premises import AUTO_MODE, IN_PLACE, NO_RESET
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, Calls
from specs.facts.columns import NOWHERE
from specs.facts.given_up import GivenUp
from specs.vocabulary import Key, Kind, Party

ID = "DLQ-3"
TITLE = "a given-up message is not delivered again"
STATEMENT = (
    "After its dead letter was acknowledged, a message is not delivered again by the same incarnation, unless with "
    "others of its batch that have to come again."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE, AUTO_MODE, NO_RESET)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = CALL_KINDS
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.DELIVER})
HEEDED = frozenset({Kind.PULL})
COLUMNS = CALL_COLUMNS


class CameBack(Finding):
    """batch: the call that held it before, and what was given up of that; of calls of one message nothing."""

    given_up: Row
    again: Row
    batch: tuple[Row, ...] = ()


def judge(rows: Rows, findings: Findings) -> None:
    """Each delivery of what was given up: it comes with others that have to, or not at all."""
    calls, given_up = rows.shared(Calls), rows.shared(GivenUp)
    findings.at_stake(given_up.safe)
    again = calls.at[~given_up.is_manual(calls.at, rows.begin[calls.at])]
    again = again[given_up.letter(again, rows.begin[again]) != NOWHERE]
    again = again[np.argsort(rows.begin[again], kind="stable")]
    before, batch = given_up.last_delivery(again), rows.config("batch", again)
    wrong = ~given_up.may_come(again) | ((before == NOWHERE) & (batch == 1))
    again, before, batch = again[wrong], before[wrong], batch[wrong]
    told = np.isin(before, again) & given_up.same_until(before, again)
    for row, last, size in zip(
        *(each[~told].tolist() for each in (again, before, batch)), strict=True
    ):
        held = calls.at[calls.number == calls.call_of[last]] if size > 1 else calls.at[:0]
        letter, *letters = given_up.letter(
            np.append(row, held), np.full(1 + len(held), rows.begin[row])
        ).tolist()
        batch_of = [*held.tolist(), *(each for each in letters if each != NOWHERE)]
        certain = not calls.may_have_put_back(np.asarray([row]))[0]
        found = {"given_up": letter, "again": row, "batch": batch_of}
        findings.shown(CameBack, found, certain=certain)


def explain(found: CameBack) -> str:
    before, again = found.given_up, found.again
    return (
        f"{who(again)} delivered offset {again.queue_offset} of {again.lane} again at {at(again)}, although the dead "
        f"letter that it had sent at {at(before)} was acknowledged"
    )
