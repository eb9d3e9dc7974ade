"""DLQ-2 where a message lies at two places, or where something on the way makes two frames of one."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import find_violations
from specs.vocabulary import Kind

FOUND_TWICE = """
    0ms..5ms  alice  dead-letters  billing/orders/b0/3        offset=17 id=m17 ok
    20ms      drain  reads         billing/%DLQ%billing/b0/0  offset=0 id=c1 origin=m17 ok
    21ms      drain  reads         billing/%DLQ%billing/b0/0  offset=1 id=c2 origin=m17 ok
"""
TWO_PLACES = """
    0ms..5ms    alice  dead-letters  billing/orders/b0/3        offset=17 id=m17 ok
    10ms..15ms  alice  dead-letters  billing/orders/b0/{queue}  offset={offset} id=m17 ok
    20ms        drain  reads         billing/%DLQ%billing/b0/0  offset=0 id=c1 origin=m17 ok
    21ms        drain  reads         billing/%DLQ%billing/b0/0  offset=1 id=c2 origin=m17 ok
"""


def violations(text: str) -> int:
    info, rows = parse_history(text)
    return len(find_violations(get("DLQ-2"), rows, info))


def test_a_dead_letter_at_two_places_is_one_too_many_where_every_frame_comes_once() -> None:
    assert violations(FOUND_TWICE) == 1


@pytest.mark.parametrize(
    ("link", "found"), [("duplicate alice b0 30", 0), ("delay alice b0 30", 1), ("duplicates", 1)]
)
def test_a_frame_that_may_have_come_twice_excuses_it(link: str, found: int) -> None:
    info, rows = parse_history(f"0ms..1ms  harness  suffers  -  detail=fault ok\n{FOUND_TWICE}")
    rows = [row._replace(detail=link) if row.kind is Kind.FAULT else row for row in rows]
    assert len(find_violations(get("DLQ-2"), rows, info)) == found


@pytest.mark.parametrize(("queue", "offset", "found"), [(3, 17, 1), (3, 18, 0), (2, 17, 0)])
def test_a_message_that_the_log_holds_twice_is_given_up_twice(
    queue: int, offset: int, found: int
) -> None:
    assert violations(TWO_PLACES.format(queue=queue, offset=offset)) == found
