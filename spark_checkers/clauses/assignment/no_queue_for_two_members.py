"""ASG-1 over columns: every share against the last ones of the other clients that saw the same."""

from __future__ import annotations

import numpy as np

from spark_checkers.rows import Findings, Rows
from spark_checkers.shares import COLUMNS, by_group, last_of_each
from spark_checkers.twin import Twin


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
