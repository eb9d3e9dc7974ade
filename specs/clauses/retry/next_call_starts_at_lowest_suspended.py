"""After a suspended batch the next call starts at the batch's lowest offset, and nothing of the batch is left behind.

A batch is put back as a whole. (a) The next call of the incarnation starts at its lowest offset, or, where some of its
messages were given up meanwhile, at one up to the lowest of the others. In an open world the batch may have begun below
what is seen of it, unless it is full, or the ADD or an earlier call of its incarnation was seen. (b) Each of the others
is owed until it was delivered again or given up: no call delivers anything beyond it before, be it the next call or,
where only a part of the batch came again, a later one. A message whose retries were used up, and of whose dead letter
there is no row, may have been given up unseen: nothing is claimed of it. Nor is anything owed that the broker has
removed on purpose: a server that keeps what waits can't give it again. A manual ROLLBACK puts more back than its batch,
see RTY-9. Nothing is remembered across an ADD or a reset: a call that began before is of an earlier life, and asks for
nothing when it ends.
"""

import numpy as np

from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, Calls
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import chosen, is_first, positions
from specs.facts.tries import Tries
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Party

ID = "RTY-4"
TITLE = "the next call starts at the lowest suspended offset"
STATEMENT = (
    "After a suspended batch, the next call of the incarnation starts at the lowest offset of that batch, and no call "
    "goes beyond a message of it that has not come again."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = CALL_KINDS
SETTINGS = ("batch", "max_reconsume_times")
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL, Kind.TRIM})
COLUMNS = CALL_COLUMNS


class StartedElsewhere(Finding):
    """lowest, highest: of the suspended batch (one row where it held one message)."""

    lowest: Row
    highest: Row
    next: Row


class LeftBehind(Finding):
    """suspended: it was put back and has not come again. dead_letter: of it, when one failed."""

    suspended: Row
    dead_letter: Row | None
    beyond: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each call after a suspended batch, and each delivery that goes beyond what is owed."""
    calls = rows.shared(Calls)
    owed = calls.owed
    mine = rows.ended_as(*LISTENER_SUSPENDS)[owed.row]
    (lowest, highest, start), told = _elsewhere(rows, calls, mine)
    beyond = passed_by(rows, calls, mine)
    until = np.minimum(np.minimum(owed.until, told), chosen(rows.begin, beyond, NEVER))
    stand = calls.stand[owed.batch[mine]]
    findings.at_stake(calls.while_any(stand, owed.since[mine], until[mine]))
    findings.broken(StartedElsewhere, lowest=lowest, highest=highest, next=start)
    message, beyond = lowest_of_each(rows, calls, np.where(told < NEVER, NOWHERE, beyond))
    findings.at_stake(beyond[~np.isin(beyond, calls.first)])
    letter = owed.failed_by(rows, message, beyond)
    findings.broken(LeftBehind, suspended=owed.row[message], dead_letter=letter, beyond=beyond)


def _elsewhere(rows: Rows, calls: Calls, mine: Mask) -> tuple[tuple[Ints, Ints, Ints], Ints]:
    """Calls that start within the batch before, but neither at its lowest offset nor up to the lowest that is owed.

    As (lowest that is owed, highest of the batch, first row of the call). And when such a call passed by what is owed,
    which is told then; NEVER where none did. mine: which of it counts.
    """
    owed, offset = calls.owed, rows.offset
    then = rows.begin[calls.first[owed.batch + 1]]
    at = positions(mine & (owed.since <= then) & (then <= owed.until))
    at = at[np.lexsort((offset[owed.row[at]], owed.batch[at]))]
    at = at[is_first(owed.batch[at])]  # of each batch the lowest that is owed
    batch, lowest = owed.batch[at], owed.row[at]
    low, high = calls.lowest_of(batch), calls.highest_of(batch)
    low_offset = np.where(rows.shared(Tries).is_whole(begun=True)[low], offset[low], 0)
    start = calls.first[batch + 1]
    wrong = (offset[start] <= offset[high]) & (
        (offset[start] < low_offset) | (offset[start] > offset[lowest])
    )
    stand, begun = calls.stand[batch[wrong]], rows.begin[start[wrong]]
    told = np.full(len(owed.row), NEVER, np.int64)
    for one, moment, first in zip(
        stand.tolist(), begun.tolist(), offset[start[wrong]].tolist(), strict=True
    ):
        passed = (calls.stand[owed.batch] == one) & (offset[owed.row] < first)
        passed &= (owed.since <= moment) & (moment <= owed.until)
        told[passed] = np.minimum(told[passed], moment)
    return (lowest[wrong], high[wrong], start[wrong]), told


def passed_by(rows: Rows, calls: Calls, mine: Mask) -> Ints:
    """Of what is owed the first delivery beyond it; NOWHERE where there is none. mine: which of it counts."""
    owed = calls.owed
    stand, offset = calls.stand[owed.batch], rows.offset[owed.row]
    return calls.first_beyond(stand, offset, owed.since, np.where(mine, owed.until, NONE))


def lowest_of_each(rows: Rows, calls: Calls, beyond: Ints) -> tuple[Ints, Ints]:
    """Of each delivery that passes by what is owed: the lowest message alone (an index of `Calls.owed`), and it."""
    which = positions(beyond != NOWHERE)
    which = which[np.lexsort((rows.offset[calls.owed.row[which]], beyond[which]))]
    which = which[is_first(beyond[which])]
    return which, beyond[which]


def explain(found: StartedElsewhere | LeftBehind) -> str:
    if isinstance(found, LeftBehind):
        suspended, new = found.suspended, found.beyond
        return (
            f"{who(new)} delivered offset {new.queue_offset} of {new.lane} at {at(new)}, although offset "
            f"{suspended.queue_offset}, which had ended {suspended.outcome} after its delivery at {at(suspended)}, has "
            f"not come again"
        )
    lowest, new = found.lowest, found.next
    return (
        f"{who(new)} started offset {new.queue_offset} of {new.lane} at {at(new)}, although the batch from offset "
        f"{lowest.queue_offset} to {found.highest.queue_offset} had ended {lowest.outcome} and had to come again from "
        f"its lowest offset"
    )
