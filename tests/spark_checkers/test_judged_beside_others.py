"""What a judge finds does not depend on which others are judged beside it."""

from __future__ import annotations

from judging import by_columns, in_memory

from spark_checkers.catalogue import all_judges
from specs.clauses.catalogue import all_clauses
from specs.history.text import parse_history

ADDED_AFTER_THE_CRASH = """
0ms..5ms      shop   sends    orders/b0/3           id=m17 delay=2 ok
1s            b0     crashes  b0
2s            alice  adds     billing/orders/b0/3   value=0
20s..21s      drain  reads    orders/b0/3           value=0 ok
"""


def test_a_row_of_another_clause_is_no_answer_of_the_broker() -> None:
    """A client adds a lane whether or not the broker is up: SND-11 waits for an answer, also beside CMT-11."""
    info, rows = parse_history(ADDED_AFTER_THE_CRASH)
    ids = ("SND-11", "SND-13", "CMT-11")
    found = by_columns(rows, info, [judge for judge in all_judges() if judge.id in ids])
    assert found == in_memory(rows, info, [clause for clause in all_clauses() if clause.id in ids])
    assert found["SND-11"] == (0, [])
