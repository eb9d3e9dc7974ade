"""What breaks RTY-1, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Trace

CLAUSE = "RTY-1"


def early_redelivery(trace: Trace) -> Changes:
    for before, row in planting.redelivered(trace):
        waited_ms = (row.started_us - (before.ended_us or 0)) // MS
        if waited_ms < 29_000:
            change = {before.seq_begin: {"suspend_ms": max(10, waited_ms + 50)}}
            about = (before.seq_begin, row.seq_begin)
            yield partial(trace.changed, change, about)


def short_suspend(trace: Trace) -> Changes:
    config = trace.info.config
    soon_us = (
        min(config.suspend_ms, config.schedule_slack_ms) * MS
    )  # what comes later may be too late for 10 ms
    for before, row in planting.redelivered(trace):
        if 11 * MS < row.started_us - (before.ended_us or 0) <= soon_us:
            change = {before.seq_begin: {"suspend_ms": 3}}
            yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "early-redelivery", "RTY-1", "a suspended message comes again too early", early_redelivery
    ),
)

LOOKALIKES = (Mutant("short-suspend", None, "a suspend of 3 ms means 10 ms", short_suspend),)
