"""PML-1: no two members of a group hold one message under leases that live at the same time.

As PML-2, of two members; its decisions are this one's too.
"""

from __future__ import annotations

from specs.plan.config import Config
from tests.definitions.pml_2 import handed_out_twice, pairs
from tests.definitions.words import Rows


def broken(rows: Rows, config: Config) -> bool:
    return any(
        first.client_id != second.client_id and handed_out_twice(rows, config, first, second)
        for first, second in pairs(rows)
    )
