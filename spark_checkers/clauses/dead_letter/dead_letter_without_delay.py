"""DLQ-7 over columns: per message and group, reads of dead letters against the last acknowledged dead letter."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.dead_letters import dead_reads, group_of
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NONE, NOWHERE, Timeline, dense
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    """A dead letter that was stored later than the bound after its answer waited."""
    ok = rows.ended_as(Outcome.OK)
    letter = rows.are(Kind.DEAD_LETTER)
    where = np.flatnonzero(letter | dead_reads(rows))
    stepped = rows.clock_stepped(where)
    message, _ = dense(rows.run[where], rows.source[where], group_of(rows, where))
    of = np.full(rows.size, NOWHERE, np.int64)
    of[where] = message
    limit = np.full(rows.size, NEVER, np.int64)
    limit[where] = stepped
    sent = where[(letter & ok)[where] & (rows.end[where] < limit[where])]
    retried = ~np.isin(rows.number("attempt"), (NONE, 1))
    failed = where[(letter & (~ok | retried))[where] & (rows.begin[where] < limit[where])]
    reads = where[(~letter & ok)[where] & (rows.end[where] < limit[where])]
    last = Timeline(of[sent], rows.end[sent]).last_before(of[reads], rows.end[reads])
    spoiled = Timeline(of[failed], rows.begin[failed]).count_before(of[reads], rows.end[reads]) > 0
    acknowledged = where[(letter & ok)[where]]
    begun = Timeline(of[acknowledged], rows.begin[acknowledged])
    over = Timeline(of[acknowledged], rows.end[acknowledged])
    alone = begun.count_before(of[reads], rows.end[reads]) == over.count_before(
        of[reads], rows.end[reads]
    )
    known = (last != NOWHERE) & ~spoiled & alone & (rows.number("wall_us")[reads] != NONE)
    reads, sent = reads[known], sent[last[known]] if len(sent) else sent
    told = rows.number("wall_us")[sent] + rows.ended[sent] - rows.started[sent]
    twice = np.asarray([rows.context_of(row).frames_twice for row in reads.tolist()], np.int64)
    judged = (rows.number("wall_us")[sent] != NONE) & (twice > rows.end[reads])
    reads, sent, told = reads[judged], sent[judged], told[judged]
    findings.at_stake(reads)
    clocks = np.asarray(
        [rows.context_of(row).info.clock_bound_us for row in reads.tolist()], np.int64
    )
    late = (
        rows.number("wall_us")[reads]
        > told + rows.config("dead_letter_bound_ms", reads) * MS + clocks
    )
    findings.violated(sent[late], reads[late])


TWIN = Twin(
    "DLQ-7",
    ("message_id", "origin_id", "outcome", "attempt", "started_us", "ended_us", "wall_us"),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


def slow_dead_letter(trace: Trace) -> Changes:
    late_us = (trace.info.config.dead_letter_bound_ms + 5_000) * MS
    for _marker, row in planting.dead_reads(trace):
        if row.wall_us is not None:
            change = {row.seq_begin: {"wall_us": row.wall_us + late_us}}
            yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "slow-dead-letter",
        "DLQ-7",
        "a dead letter was stored late",
        slow_dead_letter,
        dead_letters=True,
    ),
)
