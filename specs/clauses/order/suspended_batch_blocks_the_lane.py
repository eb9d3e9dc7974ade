"""While a listener call runs, or its batch waits to be delivered again, nothing beyond that batch is delivered.

(a) An incarnation has one running call at a time. (b) After a call that asks for its batch again (SUSPEND, null, a
throw, or a manual ROLLBACK) no call may start beyond what is owed of that batch: each message of it stays owed until it
came again, or was given up by a dead letter that was acknowledged after the call had ended (one that names no
incarnation speaks for its client). A ROLLBACK takes its dead letters back as well. A message whose retries were used
up, or whose counter is not told though there is a limit, is owed only where such a dead letter of it had failed when
the next call began: a client that is watched from outside gives messages up without telling, and whether they
arrived is for DLQ-1 to say. What is owed is forgotten when the incarnation is added anew, and when its client dies; and
of a message that is known to be gone (`specs.facts.gone`). Of several batches each is owed by itself.
Says nothing about which message of the batch comes first, nor about other lanes.
"""

import numpy as np

from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Row, Rows, at, over_us, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, Calls
from specs.facts.columns import NOWHERE, Ints
from specs.facts.segments import Batches, Segments, chosen, is_first, pairs, positions
from specs.vocabulary import Key, Kind, Party

ID = "ORD-3"
TITLE = "a suspended batch blocks the lane"
STATEMENT = "While a call runs or its batch is suspended, no other call of that incarnation starts beyond that batch."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = CALL_KINDS
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL, Kind.TRIM})
COLUMNS = CALL_COLUMNS


class Overtaken(Finding):
    """owed: a message of the running call, or of the batch that was suspended. dead_letter: of it, when one failed."""

    owed: Row
    overtaking: Row
    running: bool
    dead_letter: Row | None = None


def judge(rows: Rows, findings: Findings) -> None:
    """Each call beside the one before it that ends last, and beside what is owed of each batch before it."""
    calls = rows.shared(Calls)
    following = positions(calls.follows)
    new = calls.first[following]
    findings.at_stake(new)
    stand = calls.tenures.stand[calls.at]
    longest = np.full(rows.size, NOWHERE, np.int64)
    before = Segments(stand).highest_before(rows.end[calls.at])
    longest[calls.at] = chosen(calls.at, before, NOWHERE)
    runs = rows.end[longest[new]] >= rows.begin[new]
    findings.broken(Overtaken, {"running": True}, owed=longest[new[runs]], overtaking=new[runs])
    _overtaken(rows, calls, following[runs], findings)


def _overtaken(rows: Rows, calls: Calls, beside_another: Ints, findings: Findings) -> None:
    """Calls that start beyond all that is owed of a batch; of each batch the first such call.

    beside_another: calls that started while another one ran, of which that is said.
    """
    owed, line = calls.owed, calls.by_begin
    start, stop = line.between(calls.stand[owed.batch], owed.since, owed.until + 1)
    batches = Batches(owed.batch)
    found: list[tuple[Ints, Ints]] = []
    for batch, place in pairs(batches.lowest(start), batches.highest(stop)):
        call = line.order[place]
        highest, message = np.full((2, len(call)), NOWHERE, np.int64)
        for each in batches.members():
            one = each[batch]
            lives = (one != NOWHERE) & (start[one] <= place) & (place < stop[one])
            higher = lives & (rows.offset[owed.row[one]] > highest)
            message = np.where(higher, one, message)
            highest = np.where(higher, rows.offset[owed.row[one]], highest)
        beyond = (message != NOWHERE) & (rows.offset[calls.first[call]] > highest)
        at = positions(beyond & ~np.isin(call, beside_another))
        at = at[is_first(batch[at])]
        found.append((call[at], message[at]))
    if not found:
        return
    call, message = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((-rows.offset[owed.row[message]], call))
    order = order[is_first(call[order])]  # who goes on beyond two batches is told once
    call, message = calls.first[call[order]], message[order]
    letter = owed.failed_by(rows, message, call)
    findings.broken(
        Overtaken, {"running": False}, owed=owed.row[message], overtaking=call, dead_letter=letter
    )


def explain(found: Overtaken) -> str:
    owed, new = found.owed, found.overtaking
    what = f"{who(new)} started offset {new.queue_offset} of {new.lane} at {at(new)}"
    if found.running:
        return f"{what}, while its call of offset {owed.queue_offset}, begun at {at(owed)}, was still running"
    return (
        f"{what}, although offset {owed.queue_offset} of the same incarnation had ended {owed.outcome} at "
        f"{over_us(owed) / 1_000_000:.3f} s and had to come again first"
    )
