"""The messages of one sharding key reach a group for the first time in the order of their numbers.

The end-to-end promise, which a plain consumer log can decide: the producer numbers the messages of a key, and no matter
how many clients share the work, a message that nobody of the group has been given yet must not come after one with a
higher number. Only messages of one queue are compared (a changed queue list moves keys), and where the offsets are
known and lie the other way round, the log itself holds them so: that is the producer's business. Nothing is said of a
lane whose offset an operator has moved: messages that were skipped so may come later. Nor of a message that the broker
had removed on purpose before the higher one was delivered: only who had it already could still be given it. Where a
group is known not to begin with the first message (`consume_from`), who takes a queue over for which no offset is
stored begins behind what others may hold and be given later: only what one incarnation was given is compared, the
higher one whether or not somebody else had it before. Where the broker died between the two deliveries, as a crash or a
later epoch tells, its log may have been cut short or made anew, so that the numbers begin again: then a finding is at
most possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import IN_PLACE, NO_RESET, NOT_REMOVED, NOTHING_TAKEN_BACK, SENT_IN_TURN
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import (
    NEVER,
    NONE,
    NOWHERE,
    Segments,
    dense,
    is_first,
    positions,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Lane, Party

ID = "ORD-12"
TITLE = "first deliveries follow the key"
STATEMENT = "For each sharding key, first deliveries to a group follow the key's sequence."
PARTY = Party.PAIR
KEY = Key.GROUP_KEY
PREMISE = (IN_PLACE, SENT_IN_TURN, NO_RESET, NOT_REMOVED, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#send")
KINDS = frozenset({Kind.DELIVER})
NEEDS = frozenset({Kind.DELIVER})
EXCUSED_BY = frozenset({Kind.CRASH})
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True
COLUMNS = ("client_id", "incarnation", "queue_offset", "sharding_key", "key_seq")


@dataclass(frozen=True, slots=True)
class KeyOvertaken(Finding):
    highest: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """First deliveries of each number of a key, against the highest that was delivered before in their queue.

    Per incarnation, in runs where one may begin behind what others hold.
    """
    number = rows.number("key_seq")
    where = positions(rows.are(Kind.DELIVER) & (number != NONE))
    if not len(where):
        return
    key = (rows.run, rows.group, rows.text("topic"), rows.text("sharding_key"))
    first = is_first(*(column[where] for column in key), number[where])
    skips = [
        code
        for code, run in enumerate(rows.words("run"))
        if run in rows.runs and rows.runs[run].info.config.consume_from != "first"
    ]
    may_skip = np.isin(rows.run[where], skips)
    counts = ~may_skip | rows.names_incarnation[where]
    where, may_skip, first = where[counts], may_skip[counts], first[counts]
    queue_of_key, _ = dense(
        *(column[where] for column in key),
        rows.text("broker")[where],
        rows.number("queue_id")[where],
        np.where(may_skip, rows.incarnation[where], NOWHERE),
    )
    highest = Segments(queue_of_key).highest_before(number[where])
    after = positions(first & (highest != NOWHERE))
    findings.at_stake(where[after])
    place, before = where[after], where[highest[after]]
    overtaken = number[place] <= number[before]
    offset, other = rows.offset[place], rows.offset[before]
    stored_so = (offset != NONE) & (other != NONE) & (offset > other)
    wrong = overtaken & ~stored_so
    for which in np.flatnonzero(wrong).tolist():
        late, early = int(place[which]), int(before[which])
        wrong[which] = not (was_reset(rows, late) or was_removed(rows, late, early))
    before, place = before[wrong], place[wrong]
    pairs = zip(before.tolist(), place.tolist(), strict=True)
    lives = [not has_broker_died(rows, early, late) for early, late in pairs]
    certain = np.asarray(lives, np.bool_)
    findings.broken(KeyOvertaken, highest=before, second=place, certain=certain)


def has_broker_died(rows: Rows, before: int, place: int) -> bool:
    """Did the broker of both deliveries die between them?"""
    since, epoch = int(rows.begin[before]), int(rows.number("broker_epoch")[before])
    now = int(rows.begin[place])
    name = rows.name_of("broker", place)
    return rows.context_of(place).broker_died_since(name, since, epoch, now)


def was_reset(rows: Rows, place: int) -> bool:
    """Had somebody moved the offset of the delivery's lane before it began?"""
    resets = rows.context_of(place).resets
    if not resets:
        return False
    group, topic, broker = (
        rows.words(name)[int(rows.text(name)[place])] for name in ("group", "topic", "broker")
    )
    lane = Lane(group, topic, broker, int(rows.number("queue_id")[place]))
    return resets.get(lane, NEVER) < int(rows.begin[place])


def was_removed(rows: Rows, place: int, before: int) -> bool:
    """Had the broker removed the message on purpose before the other one was delivered?"""
    offset = int(rows.offset[place])
    kept = rows.context_of(place).kept_from(rows.queue_of(place), int(rows.begin[before]))
    return NONE < offset < kept


def explain(found: KeyOvertaken) -> str:
    first, second = found.highest, found.second
    return (
        f"group {second.group} was given number {second.key_seq} of key {second.sharding_key} for the first time at "
        f"{at(second)} (by {who(second)}), after number {first.key_seq}, which it had been given at {at(first)} "
        f"(by {who(first)})"
    )
