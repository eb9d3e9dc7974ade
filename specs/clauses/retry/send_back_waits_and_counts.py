"""What a concurrent consumer sends back comes no sooner than its delay level, counted up by one.

A copy in the group's retry topic that carries the counter n was made by a send-back of a message that carried n - 1.
It is delivered no sooner than the delay of that send-back's level after the send-back *began* (the broker counts from
when it stored the copy, which is later), less a millisecond, since brokers keep time in whole ones, and less the bound
between the clocks of the two. Level 0 asks for none: it means 3 and the counter that the message carried. Any
send-back may have been the one, whatever its answer: one that was refused because a flush took too long has stored a
copy all the same. So the earliest due time of all those that carry n - 1 counts.

Only the first delivery by a process is looked at (`attempt` 1): a client that could not send a copy back delivers it
again by itself, and shows a counter that it has counted on. A copy of a message of which no send-back was seen says
nothing, nor one of a message whose send the history does not hold: where it begins in the middle, the send-back of
which the copy was made may lie before."""

import numpy as np

from specs.clauses.premises import CLOSED_WORLD, CONCURRENT, NO_WALL_CLOCK_STEP
from specs.clauses.stored import waits_ms
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, who
from specs.facts.columns import MS, NONE, NOWHERE
from specs.facts.segments import Segments, chosen, dense, first_of_each, ints, positions
from specs.vocabulary import RETRY_PREFIX, Key, Kind, Party

ID = "RTY-10"
TITLE = "a send-back waits for its level and counts"
STATEMENT = (
    "A message that was sent back comes again no sooner than its delay level, counted up by one."
)
PARTY = Party.PAIR
KEY = Key.MESSAGE
PREMISE = (CONCURRENT, CLOSED_WORLD, NO_WALL_CLOCK_STEP)
SOURCES = ("docs/sources.md#send-back", "docs/sources.md#delay", "docs/sources.md#concurrent-loop")
KINDS = frozenset({Kind.SEND, Kind.SEND_BACK, Kind.DELIVER})
SETTINGS = ("delay_levels",)
NEEDS = frozenset({Kind.DELIVER, Kind.SEND_BACK})
COLUMNS = ("attempt", "delay_level", "message_id", "origin_id", "reconsume_times", "started_us")

DEFAULT_LEVEL = 3
"""What level 0 means, for a message that was never sent back before."""


class TooSoon(Finding):
    """wait_us: what the level means."""

    sent: Row
    returned: Row
    copy: Row
    wait_us: int


class Miscounted(Finding):
    sent: Row
    returned: Row
    copy: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each copy beside the earliest due time of the send-backs that carry one retry less. Both are few."""
    times, back = rows.number("reconsume_times"), rows.are(Kind.SEND_BACK)
    back &= (rows.number("delay_level") != NONE) & (times != NONE)
    copy = rows.are(Kind.DELIVER) & rows.starts_with("topic", RETRY_PREFIX) & (times != NONE)
    where = positions(back | (copy & (rows.number("attempt") == 1)))
    where = where[rows.begin[where] < rows.clock_stepped(where)]
    where = where[np.argsort(rows.begin[where], kind="stable")]
    (message, count), is_back = dense(rows.run, rows.source), back[where]
    of_group = dense(message[where], rows.group[where])[0]
    returned = Segments(of_group).last_before(is_back)
    topics = [(rows.name_of("topic", row), rows.name_of("group", row)) for row in where.tolist()]
    own = [topic == RETRY_PREFIX + group for topic, group in topics]
    sent, first = (
        chosen(each, first_of_each(message[each], count), NOWHERE)[message[where]]
        for each in (rows.of(Kind.SEND), where[is_back])
    )
    counts = ~is_back & (returned != NOWHERE) & np.asarray(own, np.bool_)
    counts &= (sent != NOWHERE) & (rows.begin[sent] < rows.begin[first])  # not in the midst
    findings.at_stake(where[counts])
    waits = ints([_wait_us(rows, row) if back[row] else 0 for row in where.tolist()])
    due_us = rows.started[where] + waits
    same = dense(of_group, times[where] + np.where(is_back, 1, 0))[0]
    soonest = Segments(same).highest_before(np.where(is_back, -due_us, NONE))
    known = (soonest != NOWHERE) & chosen(is_back.astype(np.int64), soonest, 0) > 0
    wrong = counts & ~known
    last = where[returned[wrong]]
    findings.broken(Miscounted, sent=sent[wrong], returned=last, copy=where[wrong])
    early = rows.started[where] < due_us[soonest] - MS - rows.clocks_us(where)
    soon, by = counts & known & early, soonest[counts & known & early]
    wait = {"wait_us": waits[by]}
    findings.broken(TooSoon, wait, sent=sent[soon], returned=where[by], copy=where[soon])


def _wait_us(rows: Rows, back: int) -> int:
    """What the level of this send-back means."""
    table = waits_ms(rows.config_of(back).delay_levels)
    asked, times = (int(rows.number(name)[back]) for name in ("delay_level", "reconsume_times"))
    level = asked or DEFAULT_LEVEL + times
    return MS * table[min(level, len(table)) - 1] if table and level > 0 else 0


def explain(found: TooSoon | Miscounted) -> str:
    returned, copy = found.returned, found.copy
    said = f"{who(copy)} was given the copy of message {copy.source_id} at {at(copy)}"
    if isinstance(found, Miscounted):
        return (
            f"{said} as retry {copy.reconsume_times}; {who(returned)} had sent it back at {at(returned)} as retry "
            f"{returned.reconsume_times}, and nobody as retry {(copy.reconsume_times or 0) - 1}"
        )
    return (
        f"{said}, {ms(copy.started_us - returned.started_us)} after {who(returned)} sent it back with level "
        f"{returned.delay_level or 'none'}, which is {ms(found.wait_us)}"
    )
