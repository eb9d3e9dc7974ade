"""A dead letter is stored at once: it does not wait for a delay level.

The time at which the broker stored it (which it writes into the message) is at most the bound later than the answer to
the client that gave the message up; both are wall clocks, and what lies between their hosts' is added. Of several dead
letters of a message the last one counts that had begun in the millisecond in which the copy was stored, or before.
Where a dead letter of the message was refused or unanswered, or tried before the history begins, or where a link made
two frames of one, a copy may arrive at any time, and nothing is claimed. Nor is anything of a copy that is read while
another dead letter of the message is under way: it may be that one's. In an open world what arrives late may be
somebody else's, and is at most possibly late.
RocketMQ promises this from 5.0 on: before, the delay level that the client sets is obeyed."""

import numpy as np

from specs.clauses.premises import DEAD_LETTER_SENT, NO_FRAME_TWICE, STAMPS_COMPARE
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, who
from specs.facts.columns import MS, NONE, NOWHERE
from specs.facts.dead_letters import dead_reads, group_of
from specs.facts.moments import Line
from specs.facts.segments import dense
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "DLQ-7"
TITLE = "a dead letter does not wait"
STATEMENT = "A dead letter is stored at once, without waiting for a delay level."
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (STAMPS_COMPARE, DEAD_LETTER_SENT, NO_FRAME_TWICE)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ})
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.READ})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = ("attempt", "ended_us", "message_id", "origin_id", "outcome", "started_us", "wall_us")


class StoredLate(Finding):
    given_up: Row
    stored: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each read of a dead letter beside the last acknowledged one of its message and group before."""
    ok, letter = rows.ended_as(Outcome.OK), rows.are(Kind.DEAD_LETTER)
    where = np.flatnonzero(letter | dead_reads(rows))
    of, limit = np.full(rows.size, NOWHERE, np.int64), rows.clock_stepped(np.arange(rows.size))
    of[where], _ = dense(rows.run[where], rows.source[where], group_of(rows, where))
    sent = where[(letter & ok)[where] & (rows.end[where] < limit[where])]
    retried = ~np.isin(rows.number("attempt"), (NONE, 1))
    failed = where[(letter & (~ok | retried))[where] & (rows.begin[where] < limit[where])]
    reads = where[(~letter & ok)[where] & (rows.end[where] < limit[where])]
    message, now, wall = of[reads], rows.end[reads], rows.number("wall_us")
    stored = wall[reads] + rows.clocks_us(reads)
    last = Line(of, rows.end, sent).last_before_with(
        message, now, lambda index, letter: wall[letter] // MS <= stored[index] // MS
    )
    spoiled = Line(of, rows.begin, failed).count_before(message, now) > 0
    letters = where[(letter & ok)[where]]
    begun, over = Line(of, rows.begin, letters), Line(of, rows.end, letters)
    alone = begun.count_before(message, now) == over.count_before(message, now)
    known = (last != NOWHERE) & ~spoiled & alone & (wall[reads] != NONE)
    reads, sent = reads[known], last[known]
    told = wall[sent] + rows.ended[sent] - rows.started[sent]
    twice = np.asarray([rows.context_of(row).frames_twice for row in reads.tolist()], np.int64)
    judged = (wall[sent] != NONE) & (twice > rows.end[reads])
    reads, sent, told = reads[judged], sent[judged], told[judged]
    findings.at_stake(reads)
    bound_us = rows.config("dead_letter_bound_ms", reads) * MS + rows.clocks_us(reads)
    late = wall[reads] > told + bound_us
    findings.broken(StoredLate, given_up=sent[late], stored=reads[late])


def explain(found: StoredLate) -> str:
    sent, stored = found.given_up, found.stored
    late = ms((stored.wall_us or 0) - (sent.ended_wall_us or 0))
    return (
        f"the dead letter of message {sent.source_id}, which {who(sent)} gave up at {at(sent)} and which was "
        f"acknowledged, was stored in {stored.topic} only {late} later"
    )
