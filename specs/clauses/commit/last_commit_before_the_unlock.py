"""Whoever gives a lane back has reported all that it finished there before, so that a successor finds it.

When an incarnation unlocks its lane in good order (after a drop, or in a shutdown), the highest offset that its
calls had finished before the drop has been committed: the request is on its way before the unlock is. Whether it
arrives is the network's affair.

Judged where the ADD was seen: whoever records adds records commits. A call that ended after the DROP finished nothing,
and what began before the ADD is of an earlier life; nobody knows what one finished of which the mode is not told,
unless it ended COMMIT. An acknowledged dead letter finishes its message in auto mode, where that was alone in the
incarnation's last call; of a batch the rest may have to come again. What the listener returns its client takes up a
moment later, and not once the lane is dropped: what ended less than `guard_slack_ms` before the DROP, or before the
unlock where no DROP is told, may be finished for nothing (in virtual time that moment is none). A commit that was
refused before the unlock reported nothing; one of which nobody says the value may have reported all that was finished
when it began. Once the incarnation commits a broker's correction (the value that a pull was told to go on at), which
replaces what was finished, or an operator resets the offset, nothing more is asked of it. An unlock that names no
incarnation is of the one that its client has dropped, or gives up in a shutdown, and has not given back, whether or not
its ADD was seen; of two, nobody knows. A commit that names none may be of any of its client's, and so may a drop.

RocketMQ's shutdown frees its leases first, in every version; profiles allow that. So what a client does while it shuts
down its work in the group, or where nobody records who does, is a finding of its own: `released-while-leaving`.
"""

import numpy as np

from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, certainly_acknowledged, may_be_by_hand
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Mask
from specs.facts.presence import may_be_leaving
from specs.facts.releases import given_back
from specs.facts.segments import positions
from specs.facts.tenures import OfTenures, Tenures
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party

ID = "CMT-13"
TITLE = "the last commit goes before the unlock"
STATEMENT = "In a clean release the last commit is sent before the unlock."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#offsets", "docs/sources.md#client-leases")
KINDS = CALL_KINDS | {Kind.COMMIT, Kind.DROP, Kind.UNLOCK}
NAMED_BY = frozenset({Kind.DEAD_LETTER})
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER, Kind.UNLOCK})
TOLD_OF_REFUSED_COMMITS = True
LOOKS_BACK = True
EXCUSED_BY = frozenset({Kind.CRASH})
SETTINGS = ("guard_slack_ms",)
COLUMNS = (*CALL_COLUMNS, "detail")


class ReleasedFirst(Finding):
    """finished: the highest message that the incarnation had certainly finished, and not reported."""

    add: Row
    finished: Row
    unlock: Row


class ReleasedWhileLeaving(Finding):
    """Likewise, by a client that was, or may have been, shutting down."""

    add: Row
    finished: Row
    unlock: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each ADD that was given back: the highest that was finished in time beside what was committed."""
    begin, offset, tenures = rows.begin, rows.offset, rows.shared(Tenures)
    commits, drops = (OfTenures(rows, rows.are(kind), begin) for kind in (Kind.COMMIT, Kind.DROP))
    calls = rows.are(Kind.DELIVER) & certainly_acknowledged(rows)
    ended = (calls | _given_up(rows)) & (rows.end < NEVER)
    finished = OfTenures(rows, ended & tenures.named, rows.end)
    for add, unlock in given_back(rows):
        since, now = int(begin[add]), int(begin[unlock])
        moved = tenures.reset[unlock] != tenures.reset[add]
        told = np.append(commits.own(add, since, now), commits.nobodys(add, since, now))
        if moved or len(drops.nobodys(add, since, now)) or rows.correction[told].any():
            continue
        until = next(iter(drops.own(add, since, now).tolist()), unlock)
        done = finished.own(add, since, int(begin[until]))
        slack_us = rows.config_of(add).guard_slack_ms * MS
        in_time = done[rows.ended[done] <= rows.started[until] - slack_us]
        if not len(in_time):
            continue
        highest = int(in_time[np.argmax(offset[in_time])])
        unclear = begin[told[rows.value[told] == NONE]].max(initial=NONE)
        if (offset[done[rows.end[done] < unclear]] >= offset[highest]).any():
            continue
        findings.at_stake_times(unlock, 1)
        refused = rows.ended_as(Outcome.REFUSED)[told] & (rows.end[told] < now)
        if rows.value[told[~refused]].max(initial=NONE) <= offset[highest]:
            kind = ReleasedWhileLeaving if may_be_leaving(rows, unlock) else ReleasedFirst
            findings.shown(kind, {"add": add, "finished": highest, "unlock": unlock})


def _given_up(rows: Rows) -> Mask:
    """Dead letters that finish the last call of their tenure, which had one message, for certain."""
    tenures = rows.shared(Tenures)
    tenure, named = tenures.number, tenures.named
    letters = positions(rows.are(Kind.DEAD_LETTER) & rows.ended_as(Outcome.OK) & named)
    calls = Line(tenure, rows.begin, positions(rows.are(Kind.DELIVER) & named))
    last = calls.last_before(tenure[letters], rows.end[letters])
    before = calls.last_before(tenure[letters], rows.begin[last])
    op, by_hand = rows.number("op_id"), may_be_by_hand(rows)
    alone = (last != NOWHERE) & ((before == NOWHERE) | (op[before] != op[last]))
    alone &= (rows.ended_as(*LISTENER_SUSPENDS) & ~by_hand)[last] & ~by_hand[letters]
    alone &= (rows.offset[last] == rows.offset[letters]) & (rows.end[last] < rows.begin[letters])
    found = np.zeros(rows.size, np.bool_)
    found[letters[alone]] = True
    return found


def explain(found: ReleasedFirst | ReleasedWhileLeaving) -> str:
    finished, unlock = found.finished, found.unlock
    return (
        f"{who(unlock)} gave {unlock.lane} back at {at(unlock)} without having committed "
        f"{(finished.queue_offset or 0) + 1}: offset {finished.queue_offset}, begun at {at(finished)}, was finished"
    )
