"""SND-8 over columns: the tags of each delivery; and, where the first deliveries of an incarnation leave a hole, what
lies in it."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import (
    NEVER,
    NO_TEXT,
    NONE,
    NOWHERE,
    Ints,
    Mask,
    Segments,
    composite,
    dense,
    first_of_each,
    positions,
)
from specs.facts.stored import STORED_WEAKLY, broker_died, halves
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    original = ~(rows.starts_with("topic", RETRY_PREFIX) | rows.starts_with("topic", DLQ_PREFIX))
    wanted = _wanted(rows)
    whole = original & (rows.number("body_hash") != NONE)
    given = positions(whole & rows.are(Kind.DELIVER))
    findings.at_stake(given)
    findings.violated(given[~wanted[given]])
    usual = (
        ~halves(rows)
        & ~np.isin(rows.number("code"), STORED_WEAKLY)
        & np.isin(rows.number("delay_level"), (0, NONE))
    )
    stored = (
        rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.end < NEVER) & (rows.offset != NONE)
    )
    _holes(rows, findings, original, positions(whole & wanted & usual & stored))


def _wanted(rows: Rows) -> Mask:
    """Does the group's subscription name the row's tag?"""
    words = rows.words("tags")
    found = np.zeros(rows.size, np.bool_)
    for run, _name in enumerate(rows.words("run")):
        here = positions(rows.run == run)
        if not len(here):
            continue
        tags = {
            tag.strip()
            for tag in rows.config_of(int(here[0])).subscription.split("||")
            if tag.strip()
        }
        named = np.asarray(
            [*(word in tags for word in words), False], np.bool_
        )  # no tag takes the last
        found[here] = named[rows.text("tags")[here]]
    return found


def _holes(rows: Rows, findings: Findings, original: Mask, sends: Ints) -> None:
    """Deliveries above all earlier ones of their incarnation, since it was added and since the last reset."""
    configs = [rows.config_of(int(place)) for place in _one_of_each_run(rows)]
    orderly = np.asarray(
        [each.mode == "orderly" and each.message_model == "clustering" for each in configs],
        np.bool_,
    )
    named = rows.text("incarnation") != NO_TEXT
    calls = original & named & rows.are(Kind.DELIVER) & (rows.offset != NONE) & orderly[rows.run]
    where = positions(
        calls | (original & named & rows.are(Kind.ADD)) | (original & rows.are(Kind.RESET))
    )
    if not len(sends) or not len(where):
        return
    # What an incarnation remembers begins anew with its ADD and with a reset of its lane.
    resets = Segments(rows.lane[where]).count_before(rows.are(Kind.RESET)[where])
    work = dense(rows.incarnation[where], resets)[0]
    adds = Segments(work).count_before(rows.are(Kind.ADD)[where])
    life = dense(work, adds)[0]
    mine = calls[where]
    where, life = where[mine], life[mine]
    offset = rows.offset[where]
    highest = Segments(life).highest_before(offset)
    raised = (highest != NOWHERE) & (offset > offset[np.maximum(highest, 0)])
    behind, before = where[raised], where[highest[raised]]
    if not len(behind):
        return
    # The first acknowledged send of each place, by place.
    ended = sends[np.argsort(rows.end[sends], kind="stable")]
    place, count = dense(rows.queue[ended], rows.offset[ended])
    sends = ended[first_of_each(place, count)]
    both = np.concatenate([rows.queue[sends], rows.queue[before]])
    keys = composite(dense(both)[0], np.concatenate([rows.offset[sends], rows.offset[before]]))
    ours, asked = keys[: len(sends)], keys[len(sends) :]
    order = np.argsort(ours, kind="stable")
    ours, sends = ours[order], sends[order]
    at = np.searchsorted(ours, asked, side="right")
    there = at < len(sends)
    next_sent = sends[np.minimum(at, len(sends) - 1)]
    there &= (rows.queue[next_sent] == rows.queue[behind]) & (
        rows.offset[next_sent] < rows.offset[behind]
    )
    for each in positions(there).tolist():
        _judge(rows, findings, int(before[each]), sends[at[each] :], int(behind[each]))


def _judge(rows: Rows, findings: Findings, before: int, sends: Ints, behind: int) -> None:
    """The first of these sends, by place, that was there and is kept when the delivery behind it began."""
    name = rows.name_of("broker", behind)
    for sent in sends.tolist():
        if rows.queue[sent] != rows.queue[behind] or rows.offset[sent] >= rows.offset[behind]:
            return
        now = int(rows.begin[behind])
        if rows.end[sent] >= now or broker_died(rows, sent, now, name):
            continue
        if rows.offset[sent] >= rows.context_of(behind).kept_from(rows.queue_of(behind), now):
            findings.at_stake(np.asarray([behind], np.int64))
            findings.violation([before, sent, behind], name="passed-over")
            return


def _one_of_each_run(rows: Rows) -> Ints:
    return first_of_each(rows.run, len(rows.words("run")))


TWIN = Twin(
    "SND-8",
    (
        "client_id",
        "incarnation",
        "queue_offset",
        "outcome",
        "code",
        "delay_level",
        "detail",
        "body_hash",
        "tags",
    ),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


def unwanted_tag(trace: Trace) -> Changes:
    for calls in trace.calls:
        for row in calls:
            if row.body_hash is not None and row.tags is not None:
                change = {row.seq_begin: {"tags": f"not-{row.tags}"}}
                yield partial(trace.changed, change)


def wanted_passed_over(trace: Trace) -> Changes:
    for calls in trace.calls:
        for before, row, after in zip(calls, calls[1:], calls[2:], strict=False):
            ascending = (
                (before.queue_offset or 0) < (row.queue_offset or 0) < (after.queue_offset or 0)
            )
            sent = trace.sent.get((row.topic, row.broker, row.queue_id, row.queue_offset))
            once = sum(each.queue_offset == row.queue_offset for each in calls) == 1
            if ascending and once and sent is not None and sent.seq_begin < before.seq_begin:
                about = (before.seq_begin, sent.seq_begin, after.seq_begin)
                yield partial(lambda r, a: trace.without([r.seq_begin], a), row, about)


def another_wanted_tag(trace: Trace) -> Changes:
    """A message had another of the wanted tags from the beginning."""
    wanted = {tag.strip() for tag in trace.info.config.subscription.split("||")}
    for row in trace.of(Kind.SEND):
        for tag in sorted(wanted - {row.tags}):
            if row.tags in wanted:
                same = [
                    each.seq_begin
                    for each in trace.rows
                    if each.message_id == row.message_id and each.tags
                ]
                change = {seq: {"tags": tag} for seq in same}
                yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "unwanted-tag",
        "SND-8",
        "a message is delivered whose tag nobody asked for",
        unwanted_tag,
        tagged=True,
    ),
    Mutant(
        "wanted-passed-over",
        "SND-8",
        "a message with a wanted tag is left out",
        wanted_passed_over,
        tagged=True,
    ),
)

LOOKALIKES = (
    Mutant(
        "another-wanted-tag",
        None,
        "a message has another wanted tag",
        another_wanted_tag,
        tagged=True,
    ),
)
