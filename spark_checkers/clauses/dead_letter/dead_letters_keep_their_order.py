"""DLQ-4 over columns: per lane and dead-letter queue, the places of its dead letters against the order of sending."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.dead_letters import ONLY_DEAD_READS, dead_reads
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Ints, dense
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


def _only_ones(message: Ints, count: int) -> Ints:
    """Indices at which a message occurs that occurs once."""
    return np.flatnonzero(np.bincount(message, minlength=count)[message] == 1)


def placed(rows: Rows) -> tuple[Ints, Ints]:
    """(dead letter, read) of messages that have one dead letter in the group, acknowledged, and one place."""
    named = (rows.source != NO_TEXT) & (rows.group != NO_TEXT)
    message, count = dense(rows.run, rows.group, rows.source)
    letters = np.flatnonzero(rows.are(Kind.DEAD_LETTER) & named)
    letters = letters[_only_ones(message[letters], count)]
    letters = letters[
        (rows.ended_as(Outcome.OK) & np.isin(rows.number("attempt"), (NONE, 1)))[letters]
    ]
    reads = np.flatnonzero(
        dead_reads(rows)
        & named
        & rows.ended_as(Outcome.OK)
        & (rows.offset != NONE)
        & (rows.end < NEVER)
    )
    reads = reads[np.argsort(rows.end[reads], kind="stable")]
    place, _ = dense(
        message[reads],
        rows.text("broker")[reads],
        rows.number("queue_id")[reads],
        rows.offset[reads],
    )
    reads = reads[np.unique(place, return_index=True)[1]]
    reads = reads[_only_ones(message[reads], count)]
    where = np.full(count, NOWHERE, np.int64)
    where[message[reads]] = reads
    found = where[message[letters]]
    return letters[found != NOWHERE], found[found != NOWHERE]


def kernel(rows: Rows, findings: Findings) -> None:
    """Of two dead letters of one lane, the one acknowledged before the other was sent lies before it."""
    letters, reads = placed(rows)
    if len(letters) < 2:
        return
    queue, _ = dense(rows.lane[letters], rows.text("broker")[reads], rows.number("queue_id")[reads])
    order = np.lexsort((rows.begin[letters], rows.offset[reads], queue))
    letters, reads, queue = letters[order], reads[order], queue[order]
    latest = -1
    for index in range(len(letters)):
        if index == 0 or queue[index] != queue[index - 1]:
            latest = index
            continue
        findings.at_stake(letters[index : index + 1])
        if rows.end[letters[index]] < rows.begin[letters[latest]]:
            findings.violation(
                [int(row) for row in (letters[index], letters[latest], reads[latest], reads[index])]
            )
        if rows.begin[letters[index]] > rows.begin[letters[latest]]:
            latest = index


TWIN = Twin(
    "DLQ-4",
    ("message_id", "origin_id", "queue_offset", "outcome", "attempt"),
    kernel,
    only=ONLY_DEAD_READS,
)
find = TWIN.find


# ---- what breaks the clause, planted


def dead_letters_reversed(trace: Trace) -> Changes:
    """All of them, so that those of one lane are among them."""
    queues: dict[Any, list[Row]] = {}
    for _marker, row in planting.dead_reads(trace):
        queues.setdefault(row.queue, []).append(row)
    kept = (
        "message_id",
        "origin_id",
        "sharding_key",
        "body_hash",
        "tags",
        "reconsume_times",
        "wall_us",
        "view",
    )
    for rows in queues.values():
        if len(rows) > 3:
            there = reversed([{name: getattr(row, name) for name in kept} for row in rows])
            changes = {row.seq_begin: columns for row, columns in zip(rows, there, strict=True)}
            about = (rows[0].seq_begin, rows[-1].seq_begin)
            yield partial(trace.changed, changes, about)


DEFECTS = (
    Mutant(
        "dead-letters-reversed",
        "DLQ-4",
        "dead letters lie the other way round",
        dead_letters_reversed,
        True,
    ),
)
