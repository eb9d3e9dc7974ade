"""A client that drops a lane, or shuts down in good order, gives its lease back: nobody has to wait for the expiry.

Found when somebody else is refused the lane though its last owner has dropped it, is long done with it, and has not
even begun to give it back. "Long done": a call of the lane, and what follows it, may still run after the drop, and the
release may come a timer's slack after both, exactly the slack included. An unlock that was begun is enough, since it
may get lost on its way; one that could not be sent at all is none, so nothing is claimed where anything stood between
the client and the broker from the drop until the release was due. Silent when the client crashed since the grant, was
paused since the drop (a pause that was over before says nothing), asks for the lane or adds it again, or its lease has
run out anyway (then the refusal is the broker's business); when the broker crashed since the grant; and when somebody
else was granted the lane since, for then it was lost and not dropped. Two processes under one client id share a lease:
where rows name both, what one of them drops the other one keeps that has added the lane, or called there, and not
dropped it. A shutdown is seen by its DROP rows; a DROP without an end says nothing.

Three findings are told apart from the rest, for clients are built so. *Taken again*: the owner had given the lane back,
asked for it once more without having been assigned it anew, and dropped it after that. *Late after call*, and *late*:
the successor is refused within one rebalance interval (`LATE_MS`, or more) of the moment at which the release was due,
and when the lane was dropped, a call of it ran, or none did.
"""

import numpy as np

from specs.clauses.links import Sending
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, NOT_PAUSED, ORDERLY, Premise
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.leases import LEASE_COLUMNS, Grants, named, over_us, refusals
from specs.facts.presence import brokers_died, died_since, of_old_lives, paused_since
from specs.facts.segments import chosen, dense, is_first, positions
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-16"
TITLE = "a dropped lane is released"
STATEMENT = "A client that drops a lane or shuts down gives the lease back: its successor never waits for the expiry."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    BROKER_LIVES,
    NOT_PAUSED,
    Premise(
        "link at work",
        "no fault of the owner's link to the broker from the drop until the release was due",
        told_by=frozenset({Kind.FAULT}),
    ),
)
SOURCES = ("docs/sources.md#client-leases",)
STAKES = (Stake(Trait.CLEAN_CHANGE, brings=2),)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.DEAD_LETTER})
SETTINGS = ("broker_lease_ms", "rebalance_ms")
NEEDS = frozenset({Kind.DROP, Kind.LOCK, Kind.UNLOCK})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = (*LEASE_COLUMNS, "process")


LATE_MS = 20_000
"""How long clients put a release off: to their next rebalance, or by `unlockDelayTimeMills`; both by default."""


class NotReleased(Finding):
    lock: Row
    drop: Row
    refused: Row


class LateAfterCall(NotReleased):
    """call: ran when the lane was dropped."""

    call: Row


class Late(NotReleased):
    pass


class TakenAgain(NotReleased):
    """unlock: before the grant `lock`, and no new incarnation between them."""

    unlock: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each answer to somebody else, beside the last owner's grant and its drop of the lane."""
    client, begin, end = rows.lane_client, rows.begin, rows.end
    granted, refused = rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK), rows.shared(refusals)
    asked = positions((granted | refused) & rows.shared(named) & (end < NEVER))
    asked = asked[end[asked] < rows.clock_stepped(asked)]
    grants = Line(rows.lane, end, rows.shared(Grants).at)
    lock = grants.last_before(rows.lane[asked], end[asked])
    others = (lock != NOWHERE) & (rows.client[lock] != rows.client[asked])
    lock, asked = lock[others], asked[others]
    told = Line(client, end, positions(refused)).last_before(client[lock], end[asked])
    has_it = (told == NOWHERE) | (
        end[told] < end[lock]
    )  # who was refused it has nothing to give back
    lock, asked = lock[has_it], asked[has_it]
    wants = Line(client, begin, rows.of(Kind.ADD, Kind.DROP, Kind.LOCK))
    drop = wants.last_before(client[lock], end[asked])
    dropped = _is_dropped(rows)[drop] & (end[lock] < begin[drop]) & (end[drop] < begin[asked])
    dropped &= _lives_yet(rows, lock, drop, asked)
    lock, drop, asked = lock[dropped], drop[dropped], asked[dropped]
    findings.at_stake(asked)
    some = refused[asked]
    _refused(rows, findings, lock[some], drop[some], asked[some])


def _is_dropped(rows: Rows) -> Mask:
    """Which rows are DROPs after which no other process of the client works on the lane, of those that are told?"""
    found, client = rows.are(Kind.DROP), rows.lane_client
    drop, process = rows.of(Kind.DROP), dense(client, rows.own_process)[0]
    told = positions(rows.are(Kind.ADD, Kind.DELIVER, Kind.DROP) & (rows.own_process != NO_TEXT))
    line = Line(process, rows.begin, told)
    index, other = Line(client, rows.begin, told[is_first(process[told])]).all_of(client[drop])
    mine, last = drop[index], line.last_before(process[other], rows.begin[drop[index]])
    goes_on = (last != NOWHERE) & ~rows.are(Kind.DROP)[last] & rows.of_two_processes(last, mine)
    mine, last = mine[goes_on], last[goes_on]
    found[mine[~of_old_lives(rows, last, rows.begin[mine])]] = False
    return found


def _lives_yet(rows: Rows, lock: Ints, drop: Ints, asked: Ints) -> Mask:
    """Would the owner's lease live through the request, did the broker and the owner, and did the owner not stand still
    since its drop?"""
    now, clocks_us = (rows.end[asked], rows.clocks_us(asked))
    limit_us = rows.config("broker_lease_ms", asked) * MS - clocks_us
    found: Mask = rows.ended[asked] - rows.started[lock] <= limit_us
    found &= ~brokers_died(rows, lock, now) & ~died_since(rows, lock, now)
    return found & ~paused_since(rows, lock, rows.started[drop], now)


def _refused(rows: Rows, findings: Findings, lock: Ints, drop: Ints, refused: Ints) -> None:
    """Should the owner have begun to give the lane back, and could it?"""
    client, begin, now = rows.lane_client, rows.begin, rows.end[refused]
    mine = client[lock]
    works = Line(client, begin, rows.of(Kind.DELIVER, Kind.DEAD_LETTER))
    work = works.highest_before(mine, now, rows.by_end)
    unlock = Line(client, begin, rows.of(Kind.UNLOCK)).last_before(mine, now)
    add = Line(client, begin, rows.of(Kind.ADD)).last_before(mine, now)
    since_us = np.maximum(rows.started[drop], np.where(work == NOWHERE, NONE, over_us(rows, work)))
    slack_us = rows.config("schedule_slack_ms", refused) * MS
    late_us = rows.started[refused] - since_us - slack_us
    wrong = late_us > rows.clocks_us(refused)
    wrong &= chosen(rows.end, work, NONE) < begin[refused]
    wrong &= chosen(begin, unlock, NONE) <= begin[lock]
    for index in positions(wrong).tolist():
        until_us = int(since_us[index] + slack_us[index])
        wrong[index] = not _was_disturbed(rows, int(drop[index]), until_us, int(now[index]))
    again = chosen(begin, unlock, NONE) > chosen(begin, add, NONE)
    interval_us = np.maximum(rows.config("rebalance_ms", refused), LATE_MS) * MS
    busy = works.highest_before(mine, begin[drop], rows.by_end)
    ran = chosen(rows.end, busy, NONE) >= begin[drop]
    soon = ~again & (late_us <= interval_us)
    findings.told_apart(
        {"lock": lock, "drop": drop, "refused": refused},
        (TakenAgain, wrong & again, {"unlock": unlock}),
        (NotReleased, wrong & ~again & ~soon, {}),
        (Late, wrong & soon & ~ran, {}),
        (LateAfterCall, wrong & soon & ran, {"call": busy}),
    )


def _was_disturbed(rows: Rows, drop: int, until_us: int, now: int) -> bool:
    """Did anything stand in the way of an unlock from the drop until then? What was over before the drop did not."""
    context, client = rows.context_of(drop), rows.client_of(drop)
    # Links suffer for the delay bound after a fault; here only what lasted beyond the drop counts.
    since_us = int(rows.started[drop]) + context.info.config.delay_bound_ms * MS
    sending = Sending(client, rows.name_of("broker", drop), Kind.UNLOCK, since_us)
    return context.is_disturbed(sending, until_us, now)


def explain(found: NotReleased) -> str:
    lock, drop, refused = found.lock, found.drop, found.refused
    later = ms(refused.started_us - drop.started_us)
    if isinstance(found, TakenAgain):
        return (
            f"{refused.client_id} was refused {refused.lane} at {at(refused)}, {later} after {drop.client_id} had "
            f"dropped it; {drop.client_id} had given it back at {at(found.unlock)}, and taken it again at {at(lock)}"
        )
    return (
        f"{refused.client_id} was refused {refused.lane} at {at(refused)}, {later} after {drop.client_id}, who was "
        f"granted it at {at(lock)}, had dropped it and not given it back"
    )
