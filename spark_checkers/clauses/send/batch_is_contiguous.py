"""SND-5 over columns: each read against the one before it in its queue, where that one showed a message of a batch."""

from __future__ import annotations

import numpy as np

from spark_checkers.rows import NEVER, NO_TEXT, NONE, Findings, Rows
from spark_checkers.segments import NOWHERE, Ints, Segments, positions
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    message, place = rows.text("message_id"), rows.value
    parts = positions(rows.are(Kind.SEND) & (place != NONE) & (message != NO_TEXT))
    if not len(parts):
        return
    reads = positions(rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.offset != NONE) & (rows.end < NEVER))
    reads = reads[np.lexsort((rows.end[reads], rows.queue[reads]))]
    before = Segments(rows.queue[reads]).previous()
    follows = before != NOWHERE
    here, last = reads[follows], reads[before[follows]]
    follows = (rows.offset[last] == rows.offset[here] - 1) & np.isin(message[last], message[parts])
    _judge(rows, findings, parts, last[follows], here[follows])


def _judge(rows: Rows, findings: Findings, parts: Ints, last: Ints, here: Ints) -> None:
    """Parts of batches are few, and so are the reads that show one."""
    message, op = rows.text("message_id"), rows.number("op_id")
    by_id: dict[tuple[int, int], int] = {}
    at: dict[tuple[int, int, int], int] = {}
    for part in parts.tolist():
        queue = int(rows.queue[part])
        by_id.setdefault((queue, int(message[part])), part)
        at.setdefault((queue, int(op[part]), int(rows.value[part])), part)
    stakes: list[int] = []
    for read, other in zip(last.tolist(), here.tolist(), strict=True):
        queue, now = int(rows.queue[read]), int(rows.end[other])
        part = by_id.get((queue, int(message[read])), NOWHERE)
        if part == NOWHERE or rows.begin[part] > now or _died(rows, part, now):
            continue
        next_part = at.get((queue, int(op[part]), int(rows.value[part]) + 1), NOWHERE)
        if next_part == NOWHERE or rows.begin[next_part] > now or message[other] == NO_TEXT:
            continue
        stakes.append(other)
        if message[other] != message[next_part]:
            findings.violation([part, next_part, read, other])
    findings.at_stake(np.asarray(stakes, np.int64))


def _died(rows: Rows, part: int, now: int) -> bool:
    broker = int(rows.text("broker")[part])
    name = rows.words("broker")[broker] if broker != NO_TEXT else ""
    return rows.context_of(part).broker_died_between(name, int(rows.begin[part]), now)


TWIN = Twin("SND-5", ("op_id", "message_id", "queue_offset", "outcome", "value"), kernel)
find = TWIN.find
