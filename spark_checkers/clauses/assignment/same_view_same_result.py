"""ASG-4 over columns: every share against the last ones of those who know the same."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.shares import COLUMNS, Share, by_group, last_of_each


def _known(share: Share) -> tuple[list[str], list[str]]:
    return sorted(share.members), sorted(share.queues)


def kernel(rows: Rows, findings: Findings) -> None:
    stakes: list[int] = []
    for shares in by_group(rows):
        for index, share in enumerate(shares):
            for client, other in last_of_each(shares, index).items():
                own = client == share.client
                if other.view == share.view if own else _known(other) == _known(share):
                    stakes.append(share.place)
                    if other.taken != share.taken if own else other.view != share.view:
                        findings.violation([other.place, share.place])
    findings.at_stake(np.asarray(stakes, np.int64))


TWIN = Twin("ASG-4", COLUMNS, kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def shared_otherwise(trace: Trace) -> Changes:
    for mine, other, *_ in planting.shared_alike(trace):
        members, _bar, queues = (mine.view or "").partition(" | ")
        turned = " ".join(reversed(queues.split()))
        if turned != queues:
            change = {mine.seq_begin: {"view": f"{members} | {turned}"}}
            about = (other.seq_begin, mine.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "another-order",
        "ASG-4",
        "a member shares out in another order",
        shared_otherwise,
        generated=False,
    ),
)
