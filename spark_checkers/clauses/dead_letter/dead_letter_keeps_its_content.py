"""DLQ-5 over columns: per message, its dead letters against the first row that shows it whole."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.dead_letters import dead_reads, group_of
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask, dense, positions
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    """A dead letter that was read whole shows what its message showed."""
    body = rows.number("body_hash")
    reads = positions(
        (body != NONE) & dead_reads(rows) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    )
    if not len(reads):
        return
    message, count = dense(rows.run, rows.source)
    original = _originals(rows, message, count, rows.end[reads], message[reads])
    known = original != NOWHERE
    findings.at_stake(reads[known])
    other = known.copy()
    other[known] = _differs(rows, original[known], reads[known]) | _elsewhere(
        rows, original[known], reads[known]
    )
    findings.violated(original[other], reads[other])
    _nameless(rows, findings, reads[~other], message, known[~other])


def _originals(rows: Rows, message: Ints, count: int, until: Ints, wanted: Ints) -> Ints:
    """For each of these messages: where it was first shown whole, -1 if not before `until` or not always the same."""
    copy = rows.starts_with("topic", RETRY_PREFIX) | rows.starts_with("topic", DLQ_PREFIX)
    whole = (rows.number("body_hash") != NONE) & (rows.text("origin_id") == NO_TEXT) & ~copy
    shown = positions(whole & rows.are(Kind.SEND, Kind.DELIVER))
    shown = shown[np.argsort(rows.begin[shown], kind="stable")]
    first = np.full(count, NOWHERE, np.int64)
    first[message[shown[::-1]]] = shown[::-1]
    another = np.full(count, NEVER, np.int64)
    others = shown[_differs(rows, shown, first[message[shown]])] if len(shown) else shown
    np.minimum.at(another, message[others], rows.begin[others])
    found = first[wanted]
    fine = (found != NOWHERE) & (rows.begin[found] < until) & (another[wanted] > until)
    return np.where(fine, found, -1)


def _differs(rows: Rows, place: Ints, other: Ints) -> Mask:
    different = np.zeros(len(place), np.bool_)
    for column in (rows.number("body_hash"), rows.text("tags"), rows.text("sharding_key")):
        different |= column[place] != column[other]
    return different


def _elsewhere(rows: Rows, original: Ints, read: Ints) -> Mask:
    """Does the dead letter name another topic than its message's?"""
    topics, views = rows.words("topic"), rows.words("view")
    named = np.asarray(
        [*(topics.index(view) if view in topics else NEVER for view in views), NO_TEXT], np.int64
    )
    view = rows.text("view")[read]
    different: Mask = (view != NO_TEXT) & (named[view] != rows.text("topic")[original])
    return different


def _nameless(rows: Rows, findings: Findings, reads: Ints, message: Ints, known: Mask) -> None:
    """Dead letters that a recorded client sent, and that name no origin. known: those that were at stake already."""
    nameless = rows.text("origin_id") == NO_TEXT
    promised = np.asarray(
        [rows.config_of(row).dialect != "4.9" for row in reads.tolist()], np.bool_
    )
    declared = np.asarray([_reads_are_declared(rows, row) for row in reads.tolist()], np.bool_)
    others = np.asarray([rows.context_of(row).named_origin for row in reads.tolist()], np.int64)
    topic_told = rows.text("view")[reads] != NO_TEXT
    looked = declared | ~nameless[reads] | (topic_told & (others < NEVER))
    promised &= looked & (nameless[reads] | ~known)
    reads, known = reads[promised], known[promised]
    if not len(reads):
        return
    letters = positions(rows.are(Kind.DEAD_LETTER) & rows.ended_as(Outcome.OK) & (rows.end < NEVER))
    letters = letters[np.argsort(rows.end[letters], kind="stable")]
    first: dict[tuple[int, int], int] = {}
    for letter, group in zip(letters.tolist(), group_of(rows, letters).tolist(), strict=True):
        first.setdefault((int(message[letter]), group), letter)
    for read, group, is_known in zip(
        reads.tolist(), group_of(rows, reads).tolist(), known.tolist(), strict=True
    ):
        sent = first.get((int(message[read]), group))
        if sent is None or rows.end[sent] > rows.end[read]:
            continue
        findings.at_stake_times(read, int(not is_known))
        if nameless[read]:
            context, told = rows.context_of(read), _reads_are_declared(rows, read)
            findings.violation(
                [sent, read],
                certain=context.info.closed_world,
                also=() if told else (context.named_origin,),
            )


def _reads_are_declared(rows: Rows, row: int) -> bool:
    """Does the run of the row say that reads are among what it records?"""
    records = rows.context_of(row).info.records
    return records is not None and any(Kind.READ in kinds for kinds in records.values())


TWIN = Twin(
    "DLQ-5",
    ("message_id", "origin_id", "outcome", "body_hash", "tags", "sharding_key", "view"),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


def changed_dead_letter(trace: Trace) -> Changes:
    for _marker, row in planting.dead_reads(trace):
        if row.body_hash is not None:
            change = {row.seq_begin: {"body_hash": row.body_hash + 1}}
            yield partial(trace.changed, change)


def another_origin(trace: Trace) -> Changes:
    for _marker, row in planting.dead_reads(trace):
        if row.body_hash is not None:
            change = {row.seq_begin: {"view": f"{trace.info.run}-topic"}}
            yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "changed-dead-letter",
        "DLQ-5",
        "a dead letter has another body",
        changed_dead_letter,
        dead_letters=True,
    ),
    Mutant(
        "another-origin",
        "DLQ-5",
        "a dead letter names another topic",
        another_origin,
        dead_letters=True,
    ),
)
