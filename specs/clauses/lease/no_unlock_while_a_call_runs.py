"""A client gives no lease back while its listener call of the lane runs.

Whoever comes next would start beside it (LSE-2). The exception is a shutdown whose waiting time has run out (a
millisecond less counts as well): then the call is left to itself, or cut. A shutdown that is over before that, while
the call runs, is no exception; of several that a client was told to make, any that has waited is one. A call that was
cut is over only for the client's book-keeping, whether or not a shutdown is told; an unlock of the same incarnation
counts against it, unless a shutdown has waited long enough. What a dead process left open says nothing about the next
process of that name, nor does what one left to itself that shut down. Of several calls of a process the one that ends
last is looked at: a cut one is passed over once another has ended after it. Two processes of one client id, where both
are told, each answer for their own calls only.

Two findings are told apart from the rest, for clients are built so. *Dropped while running*: the client has dropped the
incarnation whose call runs (some tell that only once they have given the lane back, a timer's slack later at most).
*Late unlock*: it had dropped an earlier incarnation, and was granted the lane anew since.
"""

import numpy as np

from specs.clauses.premises import ORDERLY, Premise
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.leases import named
from specs.facts.segments import chosen, dense, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-15"
TITLE = "no unlock while a call runs"
STATEMENT = (
    "A client does not give a lane's lease back while its listener call runs, save in a shutdown whose waiting time "
    "ran out."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    Premise(
        "waiting time",
        "a shutdown waits as long as the configuration says; after that it may unlock",
        told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
    ),
)
SOURCES = ("docs/sources.md#client-leases",)
KINDS = frozenset({Kind.UNLOCK, Kind.DELIVER, Kind.DROP, Kind.LOCK})
SETTINGS = ("shutdown_wait_ms",)
NEEDS = frozenset({Kind.DELIVER, Kind.UNLOCK})
COLUMNS = ("client_id", "process", "incarnation", "outcome")


class UnlockedTooSoon(Finding):
    running: Row
    unlock: Row


class DroppedWhileRunning(UnlockedTooSoon):
    """drop: of the incarnation whose call runs."""

    drop: Row


class LateUnlock(UnlockedTooSoon):
    """drop: of an earlier incarnation. grant: after it."""

    drop: Row
    grant: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each unlock beside the call that ends last, of those that its client had begun before in the same life."""
    life = dense(rows.lane, rows.client, rows.life)[0]
    call, unlock = (
        positions(rows.are(kind) & rows.shared(named)) for kind in (Kind.DELIVER, Kind.UNLOCK)
    )
    running = Line(life, rows.begin, call).highest_before(
        life[unlock], rows.begin[unlock], rows.by_end
    )
    running, unlock = running[running != NOWHERE], unlock[running != NOWHERE]
    findings.at_stake(unlock)
    told = rows.names_incarnation
    cut = rows.ended_as(Outcome.CUT)[running] & told[running]
    cut &= rows.incarnation[running] == rows.incarnation[unlock]
    apart = rows.of_two_processes(running, unlock)
    wrong = positions(((rows.end[running] > rows.begin[unlock]) | cut) & ~apart)
    which = [one for one in wrong.tolist() if not _has_waited(rows, running[one], unlock[one])]
    _tell(rows, findings, running[which], unlock[which])


def _has_waited(rows: Rows, running: int, unlock: int) -> bool:
    """Has a shutdown of the client waited long enough, and was it not over before that while the call ran?"""
    context = rows.context_of(unlock)
    wait_us = (context.info.config.shutdown_wait_ms - 1) * MS
    client, group = rows.member_of(unlock)
    return any(
        rows.started[unlock] - leave.started_us >= wait_us
        and (
            leave.ended_us is None
            or leave.ended_us - leave.started_us >= wait_us
            or not rows.begin[running] < (leave.seq_end or 0) < rows.end[running]
        )
        for leave in context.departures_of(client, group, int(rows.begin[unlock]))
    )


def _tell(rows: Rows, findings: Findings, running: Ints, unlock: Ints) -> None:
    """The findings by their names: has the client dropped the lane before, or right after that?"""
    client, told = rows.lane_client, rows.names_incarnation
    mine, begin, granted = client[unlock], rows.begin[unlock], rows.ended_as(Outcome.OK)
    drop = Line(client, rows.begin, rows.of(Kind.DROP)).last_before(mine, begin)
    grant = Line(client, rows.end, positions(rows.are(Kind.LOCK) & granted)).last_before(
        mine, begin
    )
    after = Line(client, rows.begin, rows.of(*KINDS)).first_after(mine, begin)
    late_us = rows.started[after] - rows.started[unlock]
    soon = late_us <= rows.config("schedule_slack_ms", unlock) * MS

    def drops(row: Ints) -> Mask:
        found: Mask = rows.are(Kind.DROP)[row] & told[row] & (row != NOWHERE)
        found &= rows.incarnation[row] == rows.incarnation[running]
        return found

    is_late = ~drops(drop) & (drop != NOWHERE)
    is_late &= chosen(rows.end, grant, NONE) > chosen(rows.begin, drop, NEVER)
    by_drop = np.where(drops(drop), drop, np.where(drops(after) & soon & ~is_late, after, NOWHERE))
    findings.told_apart(
        {"running": running, "unlock": unlock},
        (UnlockedTooSoon, ~is_late & (by_drop == NOWHERE), {}),
        (DroppedWhileRunning, by_drop != NOWHERE, {"drop": by_drop}),
        (LateUnlock, is_late, {"drop": drop, "grant": grant}),
    )


def explain(found: UnlockedTooSoon) -> str:
    running, unlock = found.running, found.unlock
    why = ""
    if isinstance(found, DroppedWhileRunning):
        why = f"; it dropped the lane at {at(found.drop)}"
    elif isinstance(found, LateUnlock):
        why = f"; it had dropped it at {at(found.drop)}, and been granted it anew at {at(found.grant)}"
    return (
        f"{who(unlock)} gave {unlock.lane} back at {at(unlock)}, {ms(unlock.started_us - running.started_us)} after it "
        f"had begun offset {running.queue_offset}, whose listener call was still running{why}"
    )
