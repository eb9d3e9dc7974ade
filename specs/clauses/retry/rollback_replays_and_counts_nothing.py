"""A manual ROLLBACK replays everything taken and not committed, and counts nothing.

In manual mode a SUCCESS leaves its messages taken until a COMMIT. A ROLLBACK puts them all back, with its own batch:
(a) until each of them has come again, no call of the incarnation delivers anything beyond the lowest that has not, and
(b) each of them carries, when it comes again, the retry counter that it carried before. An auto call that acknowledges,
or whose message is given up, commits all that was taken as well; so may a call of which nobody knows how it ended.
After a message was given up in manual mode, or may have been where nobody saw it, nothing is claimed of what was taken
before it. Nor is anything claimed of a call that ended after the next one had begun, or by one that began before the
ROLLBACK's had ended. Nothing is remembered across an ADD, a reset, or a pull that was told to go on further back.
"""

from collections.abc import Iterator

import numpy as np

from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, over_us, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, Calls, may_be_used_up
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import Timeline, chosen, is_first, pairs, positions
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_RESULTS, CommitMode, Key, Kind, Outcome, Party

ID = "RTY-9"
TITLE = "a manual ROLLBACK replays all that was taken"
STATEMENT = (
    "A ROLLBACK in manual mode replays all that was taken and not committed, and counts no retry."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.ROLLBACK),)
KINDS = CALL_KINDS
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL})
COLUMNS = CALL_COLUMNS


class NotReplayed(Finding):
    """taken: the lowest message that had to come before, or the one whose counter moved (counted)."""

    taken: Row
    rollback: Row
    next: Row
    counted: bool


def judge(rows: Rows, findings: Findings) -> None:
    """Each message that a ROLLBACK put back: what comes beyond it before it comes again, and with which counter."""
    calls = rows.shared(Calls)
    taken, rollback, since = _put_back(rows, calls)
    again = calls.deliveries.first_after(calls.message[taken], since - 1)
    stand, until = calls.tenures.stand[taken], chosen(rows.begin, again, NEVER)
    beyond = calls.first_beyond(stand, rows.offset[taken], since, until)
    order = np.lexsort((rows.offset[taken], beyond))
    lowest = order[is_first(beyond[order])]
    lowest = lowest[rows.end[rollback[lowest]] < chosen(rows.begin, beyond[lowest], NONE)]
    comes = positions((again != NOWHERE) & (beyond == NOWHERE))
    findings.at_stake(np.concatenate([beyond[lowest], again[comes]]))
    times = rows.number("reconsume_times")
    before, after = times[taken[comes]], times[again[comes]]
    moved = (before != NONE) & (after != NONE) & (before != after)
    counted = comes[moved & (rows.end[rollback[comes]] < rows.begin[again[comes]])]
    for of, then, is_counted in ((lowest, beyond, False), (counted, again, True)):
        rows_of = {"taken": taken[of], "rollback": rollback[of], "next": then[of]}
        findings.broken(NotReplayed, {"counted": is_counted}, certain=None, **rows_of)


def _put_back(rows: Rows, calls: Calls) -> tuple[Ints, Ints, Ints]:
    """What was taken and not committed when a ROLLBACK ended: the delivery, the ROLLBACK, and when the next call began.

    Of a message the last delivery counts.
    """
    stand, back = calls.tenures.stand, rows.ended_as(Outcome.ROLLBACK)
    takes = _in_manual_mode(rows) & (rows.ended_as(Outcome.SUCCESS) | back)
    at = calls.at[takes[calls.at]]
    at = at[rows.end[at] < chosen(rows.begin, calls.then[calls.call_of[at]], NEVER)]
    rolls = at[back[at]]
    rolls = rolls[np.argsort(-rows.end[rolls], kind="stable")]
    rolls = rolls[is_first(calls.call_of[rolls])]
    then = calls.then[calls.call_of[rolls]]
    kept = (then != NOWHERE) & ~np.isin(then, _passed(rows, calls))
    rolls, then = rolls[kept], then[kept]
    now = rows.begin[then]
    moments = [*_commits(rows, calls), (then, now)]  # what was put back is not taken any more
    where, time = (np.concatenate(each) for each in zip(*moments, strict=True))
    since = Timeline(stand[where], time).last_before(stand[then], now)
    since = chosen(time, since, NONE)
    line = Timeline(stand[at], rows.end[at])
    start, stop = line.between(stand[then], np.maximum(since, 0), now)
    start = np.where(since <= rows.end[rolls], start, stop)
    found = [np.stack([of, at[line.order[place]]]) for of, place in pairs(start, stop)]
    of, taken = np.concatenate([np.zeros((2, 0), np.int64), *found], axis=1)[:, ::-1]
    latest = is_first(of, calls.message[taken])
    of, taken = of[latest], taken[latest]
    return taken, rolls[of], now[of]


def _in_manual_mode(rows: Rows) -> Mask:
    found: Mask = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.MANUAL)
    return found


def _commits(rows: Rows, calls: Calls) -> Iterator[tuple[Ints, Ints]]:
    """Rows that commit all that was taken, or may do so, and when."""
    manual = _in_manual_mode(rows)
    done = rows.ended_as(Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK) & ~manual
    done |= rows.ended_as(Outcome.COMMIT) & manual
    letters = positions(calls.letters & rows.ended_as(Outcome.OK))
    for where in (calls.at[done[calls.at]], letters):
        yield where, rows.end[where]
    unseen = calls.at[~rows.ended_as(*LISTENER_RESULTS)[calls.at]]
    for where in (unseen, _passed(rows, calls)):
        yield where, rows.begin[where]


def _passed(rows: Rows, calls: Calls) -> Ints:
    """Calls that begin beyond what had used up its retries by then: it was given up, and that commits all as well."""
    stand = calls.tenures.stand
    spent = calls.at[(may_be_used_up(rows) & (rows.end < NEVER))[calls.at]]
    begun = Line(stand, rows.begin, calls.first)
    then = begun.first_after(stand[spent], rows.end[spent])
    highest = np.full(rows.size + 1, NEVER, np.int64)
    highest[then] = NONE
    np.maximum.at(highest, then, rows.offset[spent])
    return calls.first[rows.offset[calls.first] > highest[calls.first]]


def explain(found: NotReplayed) -> str:
    taken, new, rollback = found.taken, found.next, found.rollback
    said = f"the ROLLBACK that ended at {over_us(rollback) / 1_000_000:.3f} s"
    if found.counted:
        return (
            f"{who(new)} delivered offset {new.queue_offset} of {new.lane} at {at(new)} as retry "
            f"{new.reconsume_times}; it was retry {taken.reconsume_times} before {said}, which counts nothing"
        )
    return (
        f"{who(new)} delivered offset {new.queue_offset} of {new.lane} at {at(new)}, although {said} had put offset "
        f"{taken.queue_offset} back, which was taken and not committed and has not come again"
    )
