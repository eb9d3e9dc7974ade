"""A message that was given up, and whose dead letter was acknowledged, is not given up a second time.

Where a consumer takes several messages per call, some of a batch may have used up their retries while others have not.
The exhausted ones are given up; the batch comes again because of the others, and with it, in most clients, those that
were given up. Then no second dead letter may follow (*given up again*): whoever reads the dead letters would find one
message several times. Where nothing of its batch had to come again, or it did not come again at all, a second dead
letter has no such cause (*given up twice*). Claimed within one incarnation (another may not know), in auto mode (in
manual mode a ROLLBACK takes back what was given up as well), of no message whose mode nobody tells, and until the lane
is reset, or a pull of the client's own was told to go on further back. What lies at an offset under another id is
another message. A dead letter that was refused, or whose answer never came, is sent again, and rightly; one that was
stored weakly may be. Where brokers flush later and one died since, the offset may be that of another message. Where
several messages are taken per call and the deliveries are not in the history, a second dead letter counts as *given up
again*. Says nothing of whether the message is delivered once more with the rest of its batch.
"""

import numpy as np

from specs.clauses.context import FLUSHED_LATER
from specs.clauses.premises import AUTO_MODE, IN_PLACE, NO_RESET
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, Calls, may_be_by_hand
from specs.facts.columns import NOWHERE
from specs.facts.given_up import GivenUp
from specs.facts.moments import Line
from specs.facts.segments import positions
from specs.facts.stored import broker_died
from specs.vocabulary import Key, Kind, Party

ID = "DLQ-10"
TITLE = "a message is given up once, whatever its batch"
STATEMENT = (
    "A message whose dead letter was acknowledged is not given up again by the same incarnation, even where the rest "
    "of its batch is tried again."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE, AUTO_MODE, NO_RESET)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = CALL_KINDS
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DEAD_LETTER})
EXCUSED_BY = frozenset({Kind.CRASH})
HEEDED = frozenset({Kind.PULL})
COLUMNS = (*CALL_COLUMNS, "message_id")


class GivenUpAgain(Finding):
    """Its batch was tried again because of others, or is not known."""

    first: Row
    second: Row


class GivenUpTwice(Finding):
    """Nothing of its batch had to be tried again in between. delivered: its last delivery, where it is known."""

    delivered: Row | None
    first: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each dead letter beside the first acknowledged one of its message; whoever was in manual mode is left alone."""
    given_up, calls = rows.shared(GivenUp), rows.shared(Calls)
    untold = Line(calls.message, rows.begin, calls.at[may_be_by_hand(rows)[calls.at]])
    told = untold.last_before(calls.message, rows.begin) == NOWHERE
    second = positions(calls.letters & ~given_up.by_hand & told)
    second = second[~given_up.is_manual(second, rows.begin[second])]
    first = given_up.letter(second, rows.begin[second])
    second, first = second[first != NOWHERE], first[first != NOWHERE]
    kept = [not _may_be_taken_back(rows, *pair) for pair in np.stack([first, second], 1).tolist()]
    second, first = second[kept], first[kept]
    safe = given_up.safe[told[given_up.safe]]
    findings.at_stake(np.concatenate([safe, second[~given_up.is_safe[second]]]))
    last = given_up.last_delivery(second)
    back = given_up.letter(last, rows.begin[last]) != NOWHERE
    back &= given_up.same_until(last, second) & given_up.may_come(last)
    again = (rows.config("batch", second) > 1) & ((last == NOWHERE) | back)
    findings.told_apart(
        {"first": first, "second": second},
        (GivenUpAgain, again, {}),
        (GivenUpTwice, ~again, {"delivered": last}),
        certain=~calls.may_have_put_back(second),
    )


def _may_be_taken_back(rows: Rows, first: int, second: int) -> bool:
    """May the offset be that of another message now?"""
    names = {rows.name_of("message_id", each) for each in (first, second)} - {""}
    lost = rows.config_of(first).flush == FLUSHED_LATER
    return len(names) > 1 or (lost and broker_died(rows, first, int(rows.begin[second])))


def explain(found: GivenUpAgain | GivenUpTwice) -> str:
    first, second = found.first, found.second
    why = (
        ", and nothing of its batch had to be tried again"
        if isinstance(found, GivenUpTwice)
        else ""
    )
    return (
        f"{who(second)} gave up offset {second.queue_offset} of {second.lane} again at {at(second)}, although the dead "
        f"letter that it had sent at {at(first)} was acknowledged{why}"
    )
