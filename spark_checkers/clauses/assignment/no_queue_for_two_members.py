"""ASG-1 over columns: every share against the last ones of the other clients that saw the same."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.shares import COLUMNS, by_group, last_of_each


def kernel(rows: Rows, findings: Findings) -> None:
    stakes: list[int] = []
    for shares in by_group(rows):
        for index, share in enumerate(shares):
            known = last_of_each(shares, index).values()
            same = [
                other
                for other in known
                if other.view == share.view and other.client != share.client
            ]
            stakes.extend(share.place for _ in same)
            for other in same:
                if not set(share.taken).isdisjoint(other.taken):
                    findings.violation([other.place, share.place])
    findings.at_stake(np.asarray(stakes, np.int64))


TWIN = Twin("ASG-1", COLUMNS, kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def taken_twice(trace: Trace) -> Changes:
    for mine, other, *_ in planting.shared_alike(trace):
        if other.detail:
            change = {
                mine.seq_begin: {"detail": f"{mine.detail} {other.detail.split()[0]}".strip()}
            }
            about = (other.seq_begin, mine.seq_begin)
            yield partial(trace.changed, change, about)


def seen_by_one_only(trace: Trace) -> Changes:
    for mine, other, *_ in planting.shared_alike(trace):
        if other.detail:
            change = {mine.seq_begin: {"view": f"newcomer {mine.view}", "detail": other.detail}}
            yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "taken-twice",
        "ASG-1",
        "a member takes a queue that another one took",
        taken_twice,
        generated=False,
    ),
)

LOOKALIKES = (
    Mutant(
        "seen-by-one-only",
        None,
        "a member sees somebody whom the others don't",
        seen_by_one_only,
        generated=False,
    ),
)
