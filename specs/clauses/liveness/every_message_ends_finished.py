"""When all is healed and quiet, whoever has a lane has finished every message in it.

Judged at a settled drain, of lanes that somebody has: the last incarnation was neither dropped nor left (also where its
client came again, and where it was added in the midst of the shutdown, with which it goes) nor cut by a crash. Each
message that the drain finds at or after that incarnation's start has been finished by somebody of the group, or given
up. Where everybody is recorded, and the group consumes from the first message on, the messages count from the lowest
start that any incarnation of the lane had: what lies between and nobody finished was skipped for ever. A message whose
last call ended well although its lane had been dropped meanwhile was worked on to its end, whatever became of the
result: that a client lets go of a lane in the midst of a call, or commits what it did on it, is for other clauses. What
*settled* means, and what else is left out, is said in `specs.facts.settled` and `owners`: nothing happens while such a
drain reads, so that a message which is sent meanwhile is owed like any other. Nothing is said about how long it took.
"""

import numpy as np

from specs.clauses.premises import (
    AUTO_MODE,
    IN_PLACE,
    NO_FILTER,
    NO_RESET,
    NOTHING_TAKEN_BACK,
    SETTLED,
)
from specs.clauses.terms import Finding, Findings, Row, Rows, at, start_of, who
from specs.facts.columns import NOWHERE, Ints, Mask
from specs.facts.owners import Owners, SettledReads
from specs.facts.segments import positions
from specs.facts.settled import LEASE, SETTLED_COLUMNS, SETTLED_KINDS
from specs.vocabulary import Key, Kind, Party

ID = "LIV-1"
TITLE = "every message ends finished"
STATEMENT = "When faults are healed, every message of a lane that somebody has ends finished."
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (IN_PLACE, SETTLED, NO_RESET, NO_FILTER, AUTO_MODE, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#pull")
KINDS = SETTLED_KINDS
SETTINGS = ("consume_from", "max_reconsume_times")
NEEDS = frozenset({Kind.DELIVER, Kind.READ})
CONCLUDES_FROM_ABSENCE = True
EXCUSED_BY = frozenset({Kind.CRASH, Kind.JOIN, Kind.LEAVE})
COLUMNS = SETTLED_COLUMNS


class NeverFinished(Finding):
    """add, start: the incarnation from whose start on all is to be finished (the last one, or an earlier one that began
    lower), and what set its start: the ADD or a look-up. read: the message, found by the drain."""

    add: Row
    start: Row
    read: Row
    marker: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each message that a settled reading finds, beside each lane of its queue that somebody has."""
    found = SettledReads(rows)
    if not len(found.read):
        return
    owners = rows.shared(Owners)
    now, offset = rows.begin[found.read], rows.offset[found.read]
    last = owners.last(found.add, now)
    which = positions((last != NOWHERE) & (owners.starts.row(last, now) != NOWHERE))
    which = which[owners.work(last[which], now[which])]
    first = owners.lowest(last[which], now[which])
    low = [owners.start(add, now[which]) for add in (last[which], first)]
    which = which[offset[which] >= np.minimum(*low)]
    asked = last[which], offset[which], now[which]
    finished, doubt, unclear = owners.done(*asked)
    done = finished | owners.worked_on(*asked)
    excused = doubt | (~done & unclear)
    which, done = which[~excused], done[~excused]
    findings.at_stake(last[which])
    owed = found.first(which[~done])
    over, offset = rows.end[found.marker[owed]], offset[owed]
    # A look-up that is answered while the queue is read may say that an incarnation begins behind the message.
    last = owners.last(found.add[owed], over)
    beyond = offset < owners.start(last, over)
    mine = np.where(beyond, owners.lowest(last, over), last)
    start = owners.starts.row(mine, over)
    shown = (start != NOWHERE) & (offset >= owners.start(mine, over))
    findings.broken(
        NeverFinished,
        certain=_rest_for_certain(rows, mine[shown], over[shown]),
        add=mine[shown],
        start=start[shown],
        read=found.read[owed][shown],
        marker=found.marker[owed][shown],
    )


def _rest_for_certain(rows: Rows, where: Ints, now: Ints) -> Mask:
    """Is it known, of each of these rows' runs, how long a client that died keeps its lanes, or that none has died?"""
    found = np.zeros(len(where), np.bool_)
    for index, row in enumerate(where.tolist()):
        context = rows.context_of(row)
        none_died = context.info.closed_world and not context.has_a_client_died(int(now[index]))
        found[index] = none_died or LEASE not in context.info.config.untold
    return found


def explain(found: NeverFinished) -> str:
    add, start, read, marker = found.add, found.start, found.read, found.marker
    return (
        f"message {read.message_id} at offset {read.queue_offset} of {read.queue} was never finished by {add.group}, "
        f"although {who(add)} had started at {start_of(start)} at {at(add)}, the lane has an owner, and all was healed "
        f"and quiet by {at(marker)}"
    )
