"""The messages of one batch lie in their queue one behind the other, in their order, with nothing between them.

A batch is one request, and its rows share their `op_id`; `value` says a message's place in it, from 0. Decided by
reading the queue, upwards or downwards: where a message of a batch was read at an offset, and another message than the
batch's next one at the offset behind it just before or after, the batch is not contiguous. A batch that a retry, or a
frame that came twice, stored a second time is contiguous each time. A batch that was certainly refused is not there;
and where a message was also sent singly, before or after, nothing is said about what lies behind it; where the numbers
of its sends to the queue (`attempt`) tell of a try that is not among them, that may have been such a one, and what is
found is at most possible. A message that was sent in several batches may lie behind its neighbour of each, or at the
end of one. Whether all of a batch is there is the business of SND-1. After a death of the broker the end of its log may
be cut, so batches sent before that are passed over.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints
from specs.facts.segments import Segments, by_time, dense, positions
from specs.facts.stored import STORED_COLUMNS, broker_died, halves, refused, tried_unseen
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-5"
TITLE = "a batch is contiguous"
STATEMENT = (
    "The messages of one batch lie in their queue in their order, with nothing between them."
)
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (BROKER_LIVES,)
SOURCES = ("docs/sources.md#send",)
STAKES = (Stake(Trait.BATCH),)
KINDS = frozenset({Kind.SEND, Kind.READ})
NEEDS = frozenset({Kind.READ, Kind.SEND})
COLUMNS = (*STORED_COLUMNS, "attempt")


class Interrupted(Finding):
    part: Row
    next_part: Row
    read: Row
    other: Row


def judge(rows: Rows, findings: Findings) -> None:
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
    pair = np.stack([reads[before[follows]], reads[follows]])
    last, here = np.take_along_axis(pair, np.argsort(rows.offset[pair], axis=0), 0)
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
    unseen = tried_unseen(rows, dense(queue, message)[0])
    stakes: list[int] = []
    for read, other in zip(last.tolist(), here.tolist(), strict=True):
        key = int(queue[read]), int(message[read])
        since, now = sorted((int(rows.end[read]), int(rows.end[other])))
        known = [part for part in batches.get(key, ()) if rows.begin[part] <= now]
        if (
            not known
            or single.get(key, NEVER) <= now
            or any(rows.begin[part] > since or broker_died(rows, part, now) for part in known)
        ):
            continue
        behind = [
            at.get((key[0], int(op[part]), int(rows.value[part]) + 1), NOWHERE) for part in known
        ]
        if any(part == NOWHERE or rows.begin[part] > now for part in behind):
            continue
        stakes.append(other)
        if all(message[other] != message[part] for part in behind):
            roles = {"part": known[0], "next_part": behind[0], "read": read, "other": other}
            findings.shown(Interrupted, roles, certain=not unseen[read])
    findings.at_stake(np.asarray(stakes, np.int64))


def explain(found: Interrupted) -> str:
    part, next_part, read, other = found.part, found.next_part, found.read, found.other
    return (
        f"behind message {part.message_id} of the batch that {who(part)} sent at {at(part)}, which lies at offset "
        f"{read.queue_offset} of {read.queue}, message {other.message_id} was read at {at(other)} and not the batch's "
        f"next one, {next_part.message_id}"
    )
