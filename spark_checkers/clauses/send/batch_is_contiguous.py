"""SND-5 over columns: each read against the one before it in its queue, where that one showed a message of a batch."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_copy_topic
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import (
    NEVER,
    NO_TEXT,
    NONE,
    NOWHERE,
    Ints,
    Segments,
    by_time,
    positions,
)
from specs.facts.stored import COLUMNS, broker_died, halves, refused
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    message = rows.text("message_id")
    sends = rows.are(Kind.SEND) & (message != NO_TEXT) & ~halves(rows) & ~refused(rows)
    parts = positions(sends & (rows.value != NONE))
    if not len(parts):
        return
    alone = positions(sends & (rows.value == NONE) & np.isin(message, message[parts]))
    reads = positions(
        rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.offset != NONE) & (rows.end < NEVER)
    )
    reads = reads[by_time(rows.queue[reads], rows.end[reads])]
    before = Segments(rows.queue[reads]).previous()
    follows = before != NOWHERE
    here, last = reads[follows], reads[before[follows]]
    follows = (rows.offset[last] == rows.offset[here] - 1) & np.isin(message[last], message[parts])
    follows &= message[here] != NO_TEXT
    _judge(rows, findings, (parts, alone), last[follows], here[follows])


def _judge(
    rows: Rows, findings: Findings, sends: tuple[Ints, Ints], last: Ints, here: Ints
) -> None:
    """Parts of batches are few, and so are the reads that show one."""
    message, op, queue = rows.text("message_id"), rows.number("op_id"), rows.queue
    parts, alone = sends
    batches: dict[tuple[int, int], list[int]] = {}
    at: dict[tuple[int, int, int], int] = {}
    for part in parts.tolist():
        batches.setdefault((int(queue[part]), int(message[part])), []).append(part)
        at.setdefault((int(queue[part]), int(op[part]), int(rows.value[part])), part)
    single: dict[tuple[int, int], int] = {}
    for place in alone.tolist():
        single.setdefault((int(queue[place]), int(message[place])), int(rows.begin[place]))
    stakes: list[int] = []
    for read, other in zip(last.tolist(), here.tolist(), strict=True):
        key, now = (int(queue[read]), int(message[read])), int(rows.end[other])
        known = [part for part in batches.get(key, ()) if rows.begin[part] <= now]
        if (
            not known
            or single.get(key, NEVER) <= now
            or any(broker_died(rows, part, now) for part in known)
        ):
            continue
        behind = [
            at.get((key[0], int(op[part]), int(rows.value[part]) + 1), NOWHERE) for part in known
        ]
        if any(part == NOWHERE or rows.begin[part] > now for part in behind):
            continue
        stakes.append(other)
        if all(message[other] != message[part] for part in behind):
            findings.violation([known[0], behind[0], read, other])
    findings.at_stake(np.asarray(stakes, np.int64))


TWIN = Twin("SND-5", COLUMNS, kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def batch_interrupted(trace: Trace) -> Changes:
    found = {read.message_id: read for _send, read in planting.reads(trace)}
    found |= {row.message_id: row for row in trace.of(Kind.READ) if row.queue_offset is not None}
    parts = [
        row for row in trace.of(Kind.SEND) if row.value is not None and not is_copy_topic(row.topic)
    ]
    for part, after in itertools.pairwise(parts):
        read, other = found.get(part.message_id), found.get(after.message_id)
        if part.op_id == after.op_id and read is not None and other is not None:
            change = {other.seq_begin: {"message_id": f"{other.message_id}-other"}}
            about = (part.seq_begin, after.seq_begin, read.seq_begin, other.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "batch-interrupted",
        "SND-5",
        "another message lies within a batch",
        batch_interrupted,
        tagged=True,
    ),
)
