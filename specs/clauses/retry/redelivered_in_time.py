"""A suspended batch comes again soon after its suspend time, while its incarnation owns the lane.

The time is that of RTY-1; where the message was to be given up and its dead letter failed, it counts from the end of
that send. One of which nobody saw the answer has failed if the message itself comes again; until then nothing is owed.
Refuted by whatever the client does on the lane more than the bound (`schedule_slack_ms`) later while no call has begun;
where the listener asked for less than the consumer's own time, the bound ends as that would (after half of it at the
earliest), since who takes a short time for none asked must not pass. What comes later than that: the call itself, a
request for the lease, or the drop. Claimed only where nothing else can have kept the lane: one grant of the lease was
answered before the time was up and is still fresh when the bound ends, nothing was refused, left unanswered or given
back since, and no request for it is under way; the client was not paused, did not die, and was not shutting down when
the bound ended; and it has twice as many threads as it ever added lanes, so that none waits for one. The thread that
brings a batch back may be the one that renews leases, which asks one broker after the other: for each other broker of
which the client ever added a lane the bound is longer by the time that it waits for an answer (`LOCK_WAIT_MS`), and
besides by as long as it waited for those to its requests for this lane. Says nothing of a batch of which a message's
retries were used up and of whose dead letter there is no row, nor about an incarnation that does nothing any more.

Where only a part of the batch comes again, the rest is due when the call of that part has ended well, or at the time of
the batch if that is later, and may take the whole bound from then on. Nothing is said of the rest where that part asks
to come again too, or is given up. A call beyond the batch is ORD-3's matter: after it the rest is forgotten. Nothing
waits any more once the lane was added anew, its offset was reset, or a pull was told to go on elsewhere, be it further
back or further ahead: the client may do nothing for the lane then (RocketMQ's before 5.2 for ten seconds)."""

import numpy as np

from specs.clauses.premises import NO_RESET, NO_WALL_CLOCK_STEP, NOT_PAUSED, ORDERLY, Premise
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, own_pause_ms, pause_ms
from specs.facts.columns import MS, NEVER, NOWHERE, Ints, Mask
from specs.facts.presence import count_brokers, have_threads, were_there
from specs.facts.put_back import PutBack, Waiting
from specs.facts.ready import Lanes, Leases
from specs.facts.segments import chosen, positions
from specs.facts.waits import Waits
from specs.plan.config import LOCK_WAIT_MS
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "RTY-2"
TITLE = "a suspended batch comes again in time"
STATEMENT = "An incarnation that owns its lane redelivers a suspended batch within the suspend time plus the bound."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    NO_RESET,
    NOT_PAUSED,
    Premise("fresh lease", "a grant was answered before the time was up, and outlives the bound"),
    Premise("threads for all lanes", "the client has twice as many threads as it ever added lanes"),
)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.FRESH_LEASE),)
KINDS = CALL_KINDS | {Kind.LOCK, Kind.UNLOCK, Kind.DROP}
SETTINGS = ("client_lease_ms", "max_reconsume_times", "suspend_ms", "threads")
NEEDS = frozenset({Kind.DELIVER, Kind.LOCK})
EXCUSED_BY = frozenset({Kind.CRASH, Kind.LEAVE})
HEEDED = frozenset({Kind.PULL})
COLUMNS = (*CALL_COLUMNS, "suspend_ms")


class TooLate(Finding):
    """add: where the incarnation began. dead_letter: the failed send from whose end the time counts, if there was one.

    seen: what came too late.
    """

    add: Row
    suspended: Row
    dead_letter: Row | None
    lock: Row
    seen: Row
    due_us: int


class RestTooLate(Finding):
    """Likewise, where a part of the batch had come again: part, a delivery of it, before and after."""

    add: Row
    suspended: Row
    dead_letter: Row | None
    part: tuple[Row, ...]
    lock: Row
    seen: Row
    due_us: int


def judge(rows: Rows, findings: Findings) -> None:
    """All that was put back, and what is left of it as long as it comes again in parts."""
    put_back = rows.shared(PutBack)
    waiting = put_back.batches()
    while len(waiting.call):
        seen = _first_seen(rows, put_back, waiting)
        _judge(rows, put_back, waiting, seen, findings)
        waiting = put_back.left(waiting, seen)


def _first_seen(rows: Rows, put_back: PutBack, waiting: Waiting) -> Ints:
    """What each one's client does first: its next call, the drop, or a request for the lease that comes too late.

    NOWHERE where it does nothing more, or the lane is added anew or moved before.
    """
    calls, lane, tenures = put_back.calls, rows.shared(Lanes).lane, put_back.calls.tenures
    first, over = calls.first[waiting.call], calls.over[waiting.call]
    drops = Line(tenures.number, rows.begin, rows.of(Kind.DROP))
    drop = drops.first_after(tenures.number[first], over)
    call, moved = calls.then[waiting.call], tenures.moved_after(first, over)
    called, dropped = (chosen(rows.begin, each, NEVER) for each in (call, drop))
    until = np.minimum(np.minimum(called, dropped), moved)
    found = np.select([called == until, dropped == until], [call, drop], NOWHERE)

    def is_too_late(index: Ints, ask: Ints) -> Mask:
        found: Mask = rows.begin[ask] > until[index]
        index, ask = index[~found], ask[~found]
        due_us, letter = put_back.due(waiting, index, rows.begin[ask])
        late = rows.started[ask] > _until(rows, waiting, index, due_us, ask)
        found[~found] = late & (due_us < NEVER) & ~_may_be_taken(rows, letter)
        return found

    asks = Line(lane, rows.begin, rows.of(Kind.LOCK))
    ask = asks.first_after_with(lane[first], over, is_too_late)
    return np.where(chosen(rows.begin, ask, NEVER) < until, ask, found)


def _may_be_taken(rows: Rows, letter: Ints) -> Mask:
    """Of each dead letter that failed: did nobody see how it was answered?"""
    found: Mask = (letter != NOWHERE) & ~rows.ended_as(Outcome.REFUSED)[letter]
    return found


def _until(rows: Rows, waiting: Waiting, index: Ints, due_us: Ints, seen: Ints) -> Ints:
    """The end of the bound: sooner where the consumer's own, longer time would be over, later by what it waited for."""
    row, is_rest = waiting.row[index], waiting.part[index] != NOWHERE
    slack_us = rows.config("schedule_slack_ms", row) * MS
    less_us = (own_pause_ms(rows, row) - pause_ms(rows, row) - 1) * MS
    sooner_us = np.minimum(slack_us, np.maximum(slack_us // 2 // MS * MS, less_us))
    brokers = count_brokers(rows, seen)
    until_us: Ints = due_us + np.maximum(brokers - 1, 0) * LOCK_WAIT_MS * MS
    until_us += np.where(is_rest | (less_us < 0), slack_us, sooner_us)
    for late in positions((rows.started[seen] > until_us) & (due_us < NEVER)).tolist():
        until_us[late] += rows.shared(Waits, Kind.LOCK).us(int(seen[late]), int(due_us[late]))
    return until_us


def _judge(rows: Rows, put_back: PutBack, waiting: Waiting, seen: Ints, findings: Findings) -> None:
    """What is seen first of those that had their lease and a thread: does it come too late?"""
    leases = rows.shared(Leases)
    index = positions(seen != NOWHERE)
    call = np.where(rows.are(Kind.DELIVER)[seen], seen, NOWHERE)
    comes = (waiting.part == NOWHERE) | (waiting.has(put_back.calls.message, call) != NOWHERE)
    comes, seen, call = (comes & (call != NOWHERE))[index], seen[index], call[index]
    row, now = waiting.row[index], rows.begin[seen]
    due_us, letter = put_back.due(waiting, index, now)
    until_us = _until(rows, waiting, index, due_us, seen)
    lock = leases.granted_by(row, now, due_us - MS)
    lease_us = rows.config("client_lease_ms", seen) * MS
    counts = (due_us < NEVER) & (lock != NOWHERE) & (rows.started[lock] + lease_us >= until_us)
    counts &= ~leases.lost_since(lock, row, now) & ~leases.asked_since(lock, row, now)
    counts &= leases.sent_away(row, rows.begin[row]) > now
    again = (call != NOWHERE) & (rows.offset[call] == rows.offset[letter])
    counts &= again | ~_may_be_taken(rows, letter)
    counts &= have_threads(rows, seen) & (now < rows.clock_stepped(seen))
    counts &= were_there(rows, seen, rows.begin[row], rows.started[row], until_us)
    late = counts & (rows.started[seen] > until_us)
    findings.at_stake(seen[counts & (comes | late)])
    for found in positions(late).tolist():
        one, place = int(row[found]), int(index[found])
        roles: dict[str, int | list[int]] = {
            "add": int(put_back.calls.tenures.add[one]),
            "suspended": one,
            "dead_letter": int(letter[found]),
            "lock": int(lock[found]),
            "seen": int(seen[found]),
        }
        part, also = int(waiting.part[place]), {"due_us": int(due_us[found])}
        if part == NOWHERE:
            findings.shown(TooLate, roles, also)
        else:
            first = int(put_back.calls.first[waiting.call[place]])
            findings.shown(RestTooLate, {**roles, "part": [part, first]}, also)


def explain(found: TooLate | RestTooLate) -> str:
    row, seen = found.suspended, found.seen
    due = f"{found.due_us / 1_000_000:.3f} s"
    said = f"offset {row.queue_offset} of {row.lane} ended {row.outcome} and was due again at {due}"
    lease = f"{who(row)} had the lease since {at(found.lock)}"
    how = "delivered again"
    if isinstance(found, RestTooLate):
        again, how = found.part[1], "began the next call"
        said = (
            f"{said}, after offset {again.queue_offset} of its batch had come again at {at(again)}"
        )
    if seen.kind is Kind.DELIVER:
        late = ms(seen.started_us - found.due_us)
        return f"{said}, but {who(seen)} {how} only at {at(seen)}, {late} later; {lease}"
    what = "dropped the lane" if seen.kind is Kind.DROP else "asked for the lease"
    return f"{said}, but had not come again when {who(seen)} {what} at {at(seen)}; {lease}"
