"""Once a message was given up, its lane goes on with the next one, without any pause.

In auto mode giving a message up ends it like a success. So when its dead letter was acknowledged, and the next message
was there, the next call begins within the bound (`schedule_slack_ms`). Claimed only where nothing else can have kept
the lane: a pull that was answered before had brought the next message; a grant of the lease, or the one that renewed it
in time, is fresh until the bound ends, nothing refused and nothing given back since, and no pull told to go on
elsewhere; the client was not paused, and was not shutting down when the bound ended; one message per call; and the lane
had its thread for less than the cap on continuous work (`continuous_ms`), after which it has to make room for others:
since the last delivery, if that was a retry, else since it was added at the earliest. Says nothing where no further
call comes.
"""

import numpy as np

from specs.clauses.premises import (
    AUTO_MODE,
    BATCH_OF_ONE,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, over_us, who
from specs.facts.calls import CALL_KINDS, may_be_by_hand
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints
from specs.facts.presence import were_there
from specs.facts.ready import READY_COLUMNS, Leases, first_that_fetched
from specs.facts.segments import chosen, is_first, positions
from specs.facts.stored import copies
from specs.facts.tenures import Tenures
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party

ID = "DLQ-9"
TITLE = "the lane goes on after giving up"
STATEMENT = "In auto mode, once a message was given up the lane goes on with the next one at once."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    BATCH_OF_ONE,
    AUTO_MODE,
    NO_WALL_CLOCK_STEP,
    NO_RESET,
    NOT_PAUSED,
    Premise("fresh lease", "a grant was answered before, and it or its renewal outlives the bound"),
    Premise("the next message is there", "a pull that was answered before had brought it"),
    Premise(
        "a thread of its own",
        "the lane has its thread for less than the cap: since a retry, or since its add",
    ),
)
SOURCES = ("docs/sources.md#dead-letters", "docs/sources.md#orderly-loop")
STAKES = (Stake(Trait.FRESH_LEASE),)
KINDS = CALL_KINDS | {Kind.DROP, Kind.LOCK, Kind.UNLOCK}
SETTINGS = ("client_lease_ms", "continuous_ms")
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.DELIVER, Kind.LOCK, Kind.PULL})
EXCUSED_BY = frozenset({Kind.CRASH, Kind.LEAVE})
COLUMNS = READY_COLUMNS


class StoodStill(Finding):
    """add: where the incarnation began, where the message was no retry. last: its last delivery.

    renewed: the grant that followed in time, where it is needed. pull: it had brought the next message.
    """

    add: Row | None
    last: Row
    dead_letter: Row
    lock: Row
    renewed: Row | None
    pull: Row
    next: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each call after an acknowledged dead letter of what its lane had delivered last."""
    leases = rows.shared(Leases)
    last, letter, late = _given_up(rows)
    lock, stand = leases.granted(letter), rows.shared(Tenures).stand
    pull = first_that_fetched(rows, stand, late, rows.end[letter])
    kept = (lock != NOWHERE) & (pull != NOWHERE) & (rows.offset[late] > rows.offset[last])
    kept &= ~leases.lost_since(lock, late, rows.begin[late])
    kept &= rows.begin[late] < rows.clock_stepped(late)
    kept &= rows.begin[late] < leases.sent_away(late, rows.begin[last])
    last, letter, late, lock, pull = (each[kept] for each in (last, letter, late, lock, pull))
    until = rows.ended[letter] + rows.config("schedule_slack_ms", late) * MS
    needed_us = until - rows.config("client_lease_ms", late) * MS
    outlives, renewed = leases.outlive(lock, letter, late, needed_us)
    is_retry = rows.number("reconsume_times")[last] > 0
    add = np.where(is_retry, NOWHERE, _added(rows, last))
    turn = np.where(is_retry, last, add)
    counts = outlives & (turn != NOWHERE)
    counts &= until <= rows.started[turn] + rows.config("continuous_ms", late) * MS
    counts &= were_there(rows, late, rows.begin[last], rows.started[last], until)
    findings.at_stake(late[counts])
    broken = counts & (rows.started[late] > until)
    findings.broken(
        StoodStill,
        add=add[broken],
        last=last[broken],
        dead_letter=letter[broken],
        lock=lock[broken],
        renewed=renewed[broken],
        pull=pull[broken],
        next=late[broken],
    )


def _given_up(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """What a lane delivered last, in vain; the last acknowledged dead letter of it; and the next delivery."""
    tenures = rows.shared(Tenures)
    sent = rows.are(Kind.DEAD_LETTER) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    letter = positions(sent & tenures.named & ~copies(rows))
    letter = letter[np.argsort(-rows.end[letter], kind="stable")]
    stand, over = tenures.stand[letter], rows.end[letter]
    calls = Line(tenures.stand, rows.begin, positions(rows.are(Kind.DELIVER) & tenures.named))
    last, late = calls.last_before(stand, over), calls.first_after(stand, over)
    vain = rows.ended_as(*LISTENER_SUSPENDS)[last] & ~may_be_by_hand(rows)[last]
    kept = (last != NOWHERE) & (late != NOWHERE) & vain & (rows.offset[last] == rows.offset[letter])
    kept &= _dropped(rows, last) == _dropped(rows, late)
    last, letter, late = last[kept], letter[kept], late[kept]
    latest = is_first(late)
    return last[latest], letter[latest], late[latest]


def _dropped(rows: Rows, where: Ints) -> Ints:
    """How often the incarnation had been dropped when each of these rows began."""
    drops = Line(rows.incarnation, rows.begin, rows.of(Kind.DROP))
    return drops.count_before(rows.incarnation[where], rows.begin[where])


def _added(rows: Rows, where: Ints) -> Ints:
    """The ADD since which the lane is held, and was neither dropped nor moved by anybody; or NOWHERE."""
    tenures = rows.shared(Tenures)
    add = tenures.add[where]
    moved = chosen(rows.begin, tenures.reset[where], NONE) > chosen(rows.begin, add, NEVER)
    return np.where(moved | (_dropped(rows, where) > _dropped(rows, add)), NOWHERE, add)


def explain(found: StoodStill) -> str:
    letter, new = found.dead_letter, found.next
    late = ms(new.started_us - over_us(letter))
    return (
        f"{who(new)} started offset {new.queue_offset} of {new.lane} at {at(new)}, {late} after the dead letter of "
        f"offset {letter.queue_offset} was acknowledged; it had the message since {at(found.pull)} and the lease since "
        f"{at(found.lock)}"
    )
