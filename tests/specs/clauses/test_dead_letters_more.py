"""More of what the clauses about stored dead letters refute, and of what they excuse."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import find_violations

LANE = "billing/orders/b0/3"
DEAD = "billing/%DLQ%billing/b0/0"


def found(clause_id: str, text: str) -> list[tuple[int, ...]]:
    """The lines (from 1) that show each violation."""
    info, rows = parse_history(text.replace("LANE", LANE).replace("DEAD", DEAD))
    place = {row.seq_begin: number for number, row in enumerate(rows, start=1)}
    violations = find_violations(get(clause_id), rows, info)
    return [tuple(place[row.seq_begin] for row in each.rows) for each in violations]


REFUTED = {
    "RTY-8: given up at once": (
        "RTY-8",
        """
        0ms..5ms  alice  delivers      LANE  offset=17 id=m17 rt=0 suspend
        6ms..9ms  alice  dead-letters  LANE  offset=17 id=m17 unknown
        """,
        [(1, 2)],
    ),
    "DLQ-4: the third lies first": (
        "DLQ-4",
        """
        0ms..5ms    alice  dead-letters  LANE  offset=17 id=m17 ok
        10ms..15ms  alice  dead-letters  LANE  offset=18 id=m18 ok
        20ms..25ms  bob    dead-letters  LANE  offset=19 id=m19 ok
        30ms        drain  reads         DEAD  offset=0 origin=m19 ok
        31ms        drain  reads         DEAD  offset=1 origin=m17 ok
        32ms        drain  reads         DEAD  offset=2 origin=m18 ok
        """,
        [(1, 3, 4, 5), (2, 3, 4, 6)],
    ),
    "DLQ-5: another body": (
        "DLQ-5",
        """
        0ms..5ms  alice  delivers  LANE  offset=17 id=m17 body=1 suspend
        20ms      drain  reads     DEAD  offset=0 id=m17 origin=m17 body=2 ok
        """,
        [(1, 2)],
    ),
    "DLQ-5: another topic of origin": (
        "DLQ-5",
        """
        0ms..5ms  shop   sends  orders/b0/3  offset=17 id=m17 body=1 ok
        20ms      drain  reads  DEAD  offset=0 id=m17 origin=m17 body=1 view=bills ok
        """,
        [(1, 2)],
    ),
    "DLQ-5: the origin's id is missing": (
        "DLQ-5",
        """
        0ms..5ms  shop   sends         orders/b0/3  offset=17 id=m17 body=1 ok
        6ms..9ms  alice  dead-letters  LANE  offset=17 id=m17 ok
        20ms      drain  reads         DEAD  offset=0 id=m17 body=1 view=orders ok
        21ms      drain  reads         DEAD  offset=1 id=c2 origin=m4 body=2 view=orders ok
        """,
        [(2, 3, 4)],
    ),
    "DLQ-8: back in its own topic": (
        "DLQ-8",
        """
        0ms..5ms  alice  dead-letters  LANE  offset=17 id=m17 ok
        20ms      drain  reads         orders/b0/0  offset=4 id=c1 origin=m17 ok
        """,
        [(1, 2)],
    ),
    "DLQ-8: among the retries, though they were used up": (
        "DLQ-8",
        """
        config max_reconsume_times=1
        0ms..5ms  alice  dead-letters  LANE  offset=17 id=m17 rt=1 ok
        20ms      drain  reads         billing/%RETRY%billing/b0/0  offset=4 id=m17 origin=m17 ok
        """,
        [(1, 2)],
    ),
    "DLQ-8: among the retries of a stranger": (
        "DLQ-8",
        """
        0ms..5ms  alice  dead-letters  LANE  offset=17 id=m17 ok
        20ms      drain  reads         audit/%RETRY%audit/b0/0  offset=4 id=m17 origin=m17 ok
        """,
        [(1, 2)],
    ),
}

EXCUSED = {
    "DLQ-4: sent at the same time": (
        "DLQ-4",
        """
        0ms..15ms   alice  dead-letters  LANE  offset=17 id=m17 ok
        10ms..20ms  alice  dead-letters  LANE  offset=18 id=m18 ok
        31ms        drain  reads         DEAD  offset=1 origin=m18 ok
        32ms        drain  reads         DEAD  offset=2 origin=m17 ok
        """,
    ),
    "DLQ-4: in different queues": (
        "DLQ-4",
        """
        0ms..5ms    alice  dead-letters  LANE  offset=17 id=m17 ok
        10ms..15ms  alice  dead-letters  LANE  offset=18 id=m18 ok
        31ms        drain  reads         DEAD  offset=1 origin=m18 ok
        32ms        drain  reads         billing/%DLQ%billing/b1/0  offset=2 origin=m17 ok
        """,
    ),
    "DLQ-4: one lies in two places": (
        "DLQ-4",
        """
        0ms..5ms    alice  dead-letters  LANE  offset=17 id=m17 ok
        10ms..15ms  alice  dead-letters  LANE  offset=18 id=m18 ok
        30ms        drain  reads         DEAD  offset=0 origin=m17 ok
        31ms        drain  reads         DEAD  offset=1 origin=m18 ok
        32ms        drain  reads         DEAD  offset=2 origin=m17 ok
        """,
    ),
    "DLQ-5: one id, two contents": (
        "DLQ-5",
        """
        0ms..5ms  shop   sends  orders/b0/3  offset=17 id=m17 body=1 ok
        6ms..9ms  shop   sends  orders/b0/3  offset=18 id=m17 attempt=2 body=2 ok
        20ms      drain  reads  DEAD  offset=0 id=m17 origin=m17 body=2 ok
        """,
    ),
    "DLQ-5: nobody who is recorded sent it": (
        "DLQ-5",
        """
        0ms..5ms  shop   sends  orders/b0/3  offset=17 id=m17 body=1 ok
        20ms      drain  reads  DEAD  offset=0 id=m17 body=1 ok
        """,
    ),
    "DLQ-8: it had retries left, or came back": (
        "DLQ-8",
        """
        config max_reconsume_times=3
        0ms..5ms  alice  dead-letters  LANE  offset=17 id=m17 rt=1 ok
        20ms      drain  reads         billing/%RETRY%billing/b0/0  offset=4 id=m17 origin=m17 ok
        """,
    ),
    "DLQ-1: a copy without an id may be any, also where somebody else has none": (
        "DLQ-1",
        """
        config max_reconsume_times=0
        0ms..5ms        alice  delivers  LANE  offset=17 id=m17 rt=0 suspend
        6ms..9ms        alice  delivers  LANE  offset=18 rt=0 suspend
        10ms..11ms      alice  delivers  LANE  offset=19 id=m19 rt=0 success
        2000ms..2010ms  drain  reads     DEAD  value=1 ok
        2001ms          drain  reads     DEAD  offset=0 ok
        """,
    ),
    "DLQ-8: not every consumer is known": (
        "DLQ-8",
        """
        config closed_world=no
        0ms..5ms  alice  dead-letters  LANE  offset=17 id=m17 ok
        20ms      drain  reads         audit/%DLQ%audit/b0/0  offset=4 id=m17 origin=m17 ok
        """,
    ),
}


@pytest.mark.parametrize(("clause_id", "text", "lines"), REFUTED.values(), ids=list(REFUTED))
def test_it_is_refuted_by_these_lines(
    clause_id: str, text: str, lines: list[tuple[int, ...]]
) -> None:
    assert found(clause_id, text) == lines


@pytest.mark.parametrize(("clause_id", "text"), EXCUSED.values(), ids=list(EXCUSED))
def test_it_is_excused(clause_id: str, text: str) -> None:
    assert found(clause_id, text) == []
