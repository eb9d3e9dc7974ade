"""ORD-6 over columns: every send against the first one of its key and view."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.clauses.order.key_stays_in_one_queue import BY_KEY
from spark_checkers.planting import STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NO_TEXT, NONE, dense, first_of_each, positions
from specs.vocabulary import Kind


def kernel(rows: Rows, findings: Findings) -> None:
    view, queue_id = rows.text("view"), rows.number("queue_id")
    by_key = [code for code, words in enumerate(rows.words("view")) if BY_KEY.match(words)]
    known = np.isin(view, by_key) & (queue_id != NONE) & (rows.client != NO_TEXT)
    where = positions(rows.are(Kind.SEND) & known)
    if not len(where):
        return
    columns = (rows.run, rows.text("topic"), rows.text("sharding_key"), view)
    choice, count = dense(*(column[where] for column in columns))
    first = where[first_of_each(choice, count)][choice]
    others = rows.client[first] != rows.client[where]
    findings.at_stake(where[others])
    broker = rows.text("broker")
    wrong = others & ((broker[first] != broker[where]) | (queue_id[first] != queue_id[where]))
    findings.violated(first[wrong], where[wrong])


TWIN = Twin("ORD-6", ("client_id", "sharding_key", "view"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def producers_disagree(trace: Trace) -> Changes:
    for before, row in planting.keyed(trace):
        yield partial(
            lambda b, r: planting.moved(trace, b, r, client_id=STRANGER, process=STRANGER),
            before,
            row,
        )


DEFECTS = (
    Mutant(
        "producers-disagree",
        "ORD-6",
        "another producer has another queue",
        producers_disagree,
        generated=False,
    ),
)
