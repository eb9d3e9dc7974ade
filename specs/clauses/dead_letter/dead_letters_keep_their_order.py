"""Messages of one lane that were given up one after the other lie in that order in a dead-letter queue.

A dead letter that was acknowledged before another was sent has the smaller offset, where both lie in the same
dead-letter queue. Claimed for messages of one lane of a group, each with one dead letter, its first try and
acknowledged, and found in one place: a try before it, perhaps before the history begins, may have been stored at any
time, and in an open world somebody else's. A broker that makes dead letters wait for their delay levels can't promise
it. Decided when the history is over."""

import numpy as np

from specs.clauses.premises import ORDERLY, Premise
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints
from specs.facts.dead_letters import ONLY_DEAD_READS, dead_reads
from specs.facts.segments import dense, highest_so_far, is_first, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "DLQ-4"
TITLE = "dead letters keep their order"
STATEMENT = (
    "In a dead-letter queue the messages of one lane lie in the order in which they were given up."
)
PARTY = Party.PAIR
KEY = Key.GROUP
PREMISE = (
    ORDERLY,
    Premise(
        "one dead letter",
        "one dead letter of the message was sent in its group, once, and it was acknowledged",
    ),
)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ})
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.READ})
ONLY = ONLY_DEAD_READS
CONCLUDES_FROM_ABSENCE = True
COLUMNS = ("attempt", "message_id", "origin_id", "outcome", "queue_offset")


class OutOfOrder(Finding):
    """The first was given up before the second, and lies behind it."""

    first: Row
    second: Row
    second_read: Row
    first_read: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each dead letter beside the one that was given up last of those of its lane that lie before it."""
    letters, reads = _placed(rows)
    if len(letters) < 2:
        return
    queue, _ = dense(rows.lane[letters], rows.text("broker")[reads], rows.number("queue_id")[reads])
    order = np.lexsort((rows.begin[letters], rows.offset[reads], queue))
    letters, reads, queue = letters[order], reads[order], queue[order]
    latest = highest_so_far(queue, rows.begin[letters])
    behind = positions(~is_first(queue))
    before = latest[behind - 1]
    findings.at_stake(letters[behind])
    wrong = rows.end[letters[behind]] < rows.begin[letters[before]]
    first, second = behind[wrong], before[wrong]
    findings.broken(
        OutOfOrder,
        first=letters[first],
        second=letters[second],
        second_read=reads[second],
        first_read=reads[first],
    )


def _placed(rows: Rows) -> tuple[Ints, Ints]:
    """(dead letter, read) of messages that have one dead letter in the group, acknowledged, and one place."""
    named = (rows.source != NO_TEXT) & (rows.group != NO_TEXT)
    ok = rows.ended_as(Outcome.OK)
    message, count = dense(rows.run, rows.group, rows.source)
    letters = _only_ones(positions(rows.are(Kind.DEAD_LETTER) & named), message)
    letters = letters[(ok & np.isin(rows.number("attempt"), (NONE, 1)))[letters]]
    reads = positions(dead_reads(rows) & named & ok & (rows.offset != NONE) & (rows.end < NEVER))
    reads = reads[np.argsort(rows.end[reads], kind="stable")]
    place, _ = dense(
        message[reads],
        rows.text("broker")[reads],
        rows.number("queue_id")[reads],
        rows.offset[reads],
    )
    reads = _only_ones(reads[np.unique(place, return_index=True)[1]], message)
    where = np.full(count, NOWHERE, np.int64)
    where[message[reads]] = reads
    found = where[message[letters]]
    return letters[found != NOWHERE], found[found != NOWHERE]


def _only_ones(where: Ints, message: Ints) -> Ints:
    """Those of these rows whose message has no other one among them."""
    found: Ints = where[np.bincount(message[where])[message[where]] == 1]
    return found


def explain(found: OutOfOrder) -> str:
    first, second = found.first, found.second
    return (
        f"message {first.source_id}, given up by {who(first)} at {at(first)}, lies at offset "
        f"{found.first_read.queue_offset} of {found.first_read.queue}, behind message {second.source_id} at offset "
        f"{found.second_read.queue_offset}, which was given up only at {at(second)}"
    )
