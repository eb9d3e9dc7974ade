"""Who let a lane go last, as a small history tells."""

from __future__ import annotations

import pytest

from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import positions
from specs.facts.vacancies import Vacancies
from specs.history.store import rows_to_table
from specs.history.text import parse_history
from specs.vocabulary import Kind

ADDED = """\
0ms  alice joins billing
0ms  bob   joins billing
1ms  bob   adds  billing/orders/b0/3 value=0
20ms alice adds  billing/orders/b0/3 value=0
"""
DROPPED = "31ms alice drops billing/orders/b0/3\n"
LET_GO = (
    ("bob has it still", DROPPED, None),
    ("bob drops it later", DROPPED + "40ms bob drops billing/orders/b0/3", ("bob", 40)),
    ("he had dropped it before", "9ms bob drops billing/orders/b0/3\n" + DROPPED, ("alice", 31)),
    ("he leaves", DROPPED + "40ms..41ms bob leaves billing", ("bob", 41)),
    ("he leaves and comes again", DROPPED + "40ms..41ms bob leaves billing\n50ms bob joins billing",
     ("bob", 41)),
    ("he leaves another group", DROPPED + "40ms..41ms bob leaves audit", None),
    ("he dies twice", DROPPED + "40ms bob crashes -\n50ms bob joins billing\n60ms bob crashes -",
     ("bob", 40)),
)  # fmt: skip


@pytest.mark.parametrize(("what", "text", "who"), LET_GO, ids=[each[0] for each in LET_GO])
def test_a_lane_is_nobodys_once_the_last_who_had_it_let_it_go(
    what: str, text: str, who: tuple[str, int] | None
) -> None:
    info, all_rows = parse_history(ADDED + text)
    of_queues = [row for row in all_rows if row.queue_id is not None]
    rows = Rows(rows_to_table(of_queues), {info.run: RunContext.of_rows(info, all_rows)})
    last = int(positions(rows.are(Kind.ADD))[-1])
    found = rows.shared(Vacancies).of(last, max(row.seq_begin for row in all_rows) + 1)
    let_go = found and (rows.client_of(found.roles["add"]), found.over_us // 1_000)
    assert let_go == who
