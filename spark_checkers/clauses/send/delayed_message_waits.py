"""What breaks SND-7, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "SND-7"


def seen_before_its_level(trace: Trace) -> Changes:
    last = len(trace.info.config.delay_levels.split())
    for send, read in planting.reads(trace):
        change = {send.seq_begin: {"delay_level": last}}
        about = (send.seq_begin, read.seq_begin)
        yield partial(trace.changed, change, about)


def no_level_at_all(trace: Trace) -> Changes:
    for send, _read in planting.reads(trace):
        told = (
            row
            for row in trace.rows
            if row.message_id == send.message_id and row.delay_level is not None
        )
        change = {row.seq_begin: {"delay_level": -1} for row in (send, *told)}
        yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "seen-before-its-level",
        "SND-7",
        "a delayed message is there at once",
        seen_before_its_level,
    ),
)

LOOKALIKES = (
    Mutant("no-level-at-all", None, "a level below 0 waits for nothing", no_level_at_all),
)
