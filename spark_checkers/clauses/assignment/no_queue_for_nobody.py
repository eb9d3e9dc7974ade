"""ASG-2 over columns: whenever all members have shared the same out, what is left over."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.shares import COLUMNS, by_group, last_of_each

MEMBERS_MAX = 9


def kernel(rows: Rows, findings: Findings) -> None:
    names = rows.words("client_id")
    stakes: list[int] = []
    for shares in by_group(rows):
        for index, share in enumerate(shares):
            members = set(share.members)
            if (
                names[share.client] not in members
                or len(members) > MEMBERS_MAX
                or len(members) < len(share.members)
            ):
                continue
            known = {**last_of_each(shares, index), share.client: share}
            party = [
                each
                for each in known.values()
                if each.view == share.view and names[each.client] in members
            ]
            if len(party) < len(members):
                continue
            stakes.append(share.place)
            if set(share.queues).difference(*(each.taken for each in party)):
                findings.violation([each.place for each in party])
    findings.at_stake(np.asarray(stakes, np.int64))


TWIN = Twin("ASG-2", COLUMNS, kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def taken_by_nobody(trace: Trace) -> Changes:
    for mine, other, *_ in planting.shared_alike(trace):
        if mine.detail:
            change = {mine.seq_begin: {"detail": " ".join(mine.detail.split()[1:])}}
            about = (other.seq_begin, mine.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "taken-by-nobody",
        "ASG-2",
        "a member leaves a queue of its share out",
        taken_by_nobody,
        generated=False,
    ),
)
