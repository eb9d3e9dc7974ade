"""ORD-12 over columns: whole-array arithmetic, no state at all."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Segments, dense, first_of_each
from specs.vocabulary import Kind, Lane


def kernel(rows: Rows, findings: Findings) -> None:
    """First deliveries of each number of a key; then, per queue, each against the highest before it.

    Per incarnation, in runs where one may begin behind what others hold.
    """
    number = rows.number("key_seq")
    where = np.flatnonzero(rows.are(Kind.DELIVER) & (number != NONE))
    if not len(where):
        return
    key = (rows.run, rows.group, rows.text("topic"), rows.text("sharding_key"))
    of_key, count = dense(*(column[where] for column in key), number[where])
    first = np.sort(first_of_each(of_key, count))
    where = where[first]
    skips = [
        code
        for code, run in enumerate(rows.words("run"))
        if run in rows.runs and rows.runs[run].info.config.consume_from != "first"
    ]
    may_skip = np.isin(rows.run[where], skips)
    counts = ~may_skip | (rows.text("incarnation")[where] != NO_TEXT)
    where, may_skip = where[counts], may_skip[counts]
    queue_of_key, _ = dense(
        *(column[where] for column in key),
        rows.text("broker")[where],
        rows.number("queue_id")[where],
        np.where(may_skip, rows.incarnation[where], NOWHERE),
    )
    highest = Segments(queue_of_key).highest_before(number[where])
    after = np.flatnonzero(highest != NOWHERE)
    findings.at_stake(where[after])
    place, before = where[after], where[highest[after]]
    overtaken = number[place] <= number[before]
    offset, other = rows.offset[place], rows.offset[before]
    stored_so = (offset != NONE) & (other != NONE) & (offset > other)
    wrong = overtaken & ~stored_so
    for which in np.flatnonzero(wrong).tolist():
        late, early = int(place[which]), int(before[which])
        began_anew = may_skip[after[which]] and is_of_another_life(rows, late, early)
        wrong[which] = not (began_anew or was_reset(rows, late) or was_removed(rows, late, early))
    before, place = before[wrong], place[wrong]
    pairs = zip(before.tolist(), place.tolist(), strict=True)
    lives = [not has_broker_died(rows, early, late) for early, late in pairs]
    findings.violated(before, place, certain=np.asarray(lives, np.bool_))


def is_of_another_life(rows: Rows, place: int, before: int) -> bool:
    """Had the client of both deliveries left the group between them, and begun anew?"""
    client, group = rows.name_of("client_id", place), rows.name_of("group", place)
    since, now = int(rows.begin[before]), int(rows.begin[place])
    return rows.context_of(place).is_of_an_old_life(client, group, since, now)


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


TWIN = Twin(
    "ORD-12", ("client_id", "incarnation", "queue_offset", "sharding_key", "key_seq"), kernel
)
find = TWIN.find


# ---- what breaks the clause, planted


def swap_key(trace: Trace) -> Changes:
    for first, second in planting.neighbours(trace):
        same = first.sharding_key is not None and first.sharding_key == second.sharding_key
        if (
            same
            and first.key_seq is not None
            and second.key_seq is not None
            and first.key_seq < second.key_seq
        ):
            yield partial(planting.swapped, trace, first, second)


DEFECTS = (
    Mutant(
        "swap-key",
        "ORD-12",
        "two neighbours of one key are delivered the wrong way round",
        swap_key,
    ),
)
