"""ORD-1 over columns: every send against the last one of its key that ended before it began."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Timeline, dense, positions
from specs.vocabulary import Kind, Outcome

BY_KEY = re.compile(r"\s*(?!(?:random|round-robin)\s)\S+\s+\S")
"""A selector that looks at the key, and a queue at least."""


def kernel(rows: Rows, findings: Findings) -> None:
    view, queue_id, delay = rows.text("view"), rows.number("queue_id"), rows.number("delay_level")
    sent = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    by_key = [code for code, words in enumerate(rows.words("view")) if BY_KEY.match(words)]
    sent &= np.isin(view, by_key)
    sent &= (queue_id != NONE) & (rows.offset != NONE) & ((delay == NONE) | (delay == 0))
    where = positions(sent)
    if not len(where):
        return
    columns = (rows.run, rows.client, rows.text("topic"), rows.text("sharding_key"))
    key, _ = dense(*(column[where] for column in columns))
    before = Timeline(key, rows.end[where]).last_before(key, rows.begin[where])
    later = np.flatnonzero(before != NOWHERE)
    one, two = where[before[later]], where[later]
    same = view[one] == view[two]
    one, two = one[same], two[same]
    findings.at_stake(two)
    broker = rows.text("broker")
    strayed = (broker[one] != broker[two]) | (queue_id[one] != queue_id[two])
    behind = (rows.offset[two] <= rows.offset[one]) & (rows.number("attempt")[two] <= 1)
    for place in np.flatnonzero(strayed | behind).tolist():
        first, second = int(one[place]), int(two[place])
        if strayed[place] or not _died_since(rows, first, second):
            findings.violation([first, second])


def _died_since(rows: Rows, first: int, second: int) -> bool:
    """Did the broker of both die after the first send began and before the second one ended?"""
    code = int(rows.text("broker")[first])
    broker = rows.words("broker")[code] if code != NO_TEXT else ""
    epoch = int(rows.number("broker_epoch")[first])
    return rows.context_of(first).broker_died_since(
        broker, int(rows.begin[first]), epoch, int(rows.end[second])
    )


TWIN = Twin(
    "ORD-1",
    ("client_id", "sharding_key", "view", "queue_offset", "outcome", "delay_level", "attempt"),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


def key_strays(trace: Trace) -> Changes:
    for before, row in planting.keyed(trace):
        yield partial(planting.moved, trace, before, row)


def queues_changed(trace: Trace) -> Changes:
    """The list of queues is another one for a moment, and the key has another queue in it."""
    for send, read in planting.reads(trace):
        if send.view is not None and send.message_id == read.message_id:
            more: dict[str, Any] = {
                "view": f"{send.view} z/9",
                "broker": "z",
                "queue_id": 9,
                "queue_offset": 0,
                "message_id": f"{send.message_id}-moved",
            }
            yield partial(
                lambda s, m: trace.with_more([trace.another(s, s, 1, **m)], [s.seq_begin]),
                send,
                more,
            )


DEFECTS = (
    Mutant(
        "key-strays",
        "ORD-1",
        "a later message of a key lies in another queue",
        key_strays,
        generated=False,
    ),
)

LOOKALIKES = (
    Mutant(
        "queues-changed",
        None,
        "a key moves with the list of queues",
        queues_changed,
        generated=False,
    ),
)
