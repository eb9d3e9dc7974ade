"""What is a step away from a history: where its answer turns, and whatever comes beside it or in its midst."""

from __future__ import annotations

from random import Random

from neighbours import beside, from_zero, in_the_midst, steps, told_otherwise
from test_nearby import BEFORE
from turning import turning

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.vocabulary import Kind

INFO, ROWS = BEFORE
SUSPENDED = parse_history(
    """
0ms             alice  adds      billing/orders/b0/3   value=17
0ms..5ms        alice  locks     billing/orders/b0/3   ok
10ms..20ms      alice  delivers  billing/orders/b0/3   offset=17 id=m17 suspend=1000 suspend
2021ms..2022ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 success
"""
)


def test_a_bound_that_is_a_sum_is_met_to_the_microsecond_and_missed_by_one() -> None:
    """A call that ended, a second that it asked for, and a second that a timer may be late."""
    info, rows = SUSPENDED
    came = {
        row.started_us
        for info, changed in turning(info, rows, get("RTY-2"))
        for row in changed
        if info == SUSPENDED[0] and row.op_id == 4 and changed[1].ended_us == rows[1].ended_us
    }
    assert {2_020_000, 2_020_001} <= came


def test_what_is_moved_keeps_to_the_order_of_time() -> None:
    for _, rows in steps(INFO, ROWS, get("LSE-4"), [ROWS], "words"):
        assert [row.seq_begin for row in rows] == sorted(row.seq_begin for row in rows)
        places = [seq for row in rows for seq in {row.seq_begin, row.seq_end} - {None}]
        assert len(set(places)) == len(places)


def test_the_same_words_give_the_same_histories() -> None:
    first, second = (list(steps(INFO, ROWS, get("LSE-4"), [ROWS], "words")) for _ in range(2))
    assert first == second


def test_the_first_offset_and_each_moment_are_once_0() -> None:
    found = list(from_zero(ROWS))
    assert any(row.queue_offset == 0 for rows in found for row in rows)
    assert any(row.kind is Kind.COMMIT and row.value == 1 for rows in found for row in rows)
    assert all(
        any(row.started_us == 0 and row.kind is kind for rows in found for row in rows)
        for kind in {row.kind for row in ROWS}
    )


def test_a_row_of_each_kind_comes_in_the_midst_of_each_call() -> None:
    call = next(row for row in ROWS if row.kind is Kind.DELIVER)
    within = {
        row.kind
        for number in range(3)
        for rows in in_the_midst(ROWS, frozenset({Kind.DROP, Kind.LOCK}), Random(number))
        for row in rows
        if call.started_us <= row.started_us <= (call.ended_us or 0) and row.op_id > len(ROWS)
    }
    assert within >= {Kind.DROP, Kind.LOCK}


def test_there_are_two_of_each_thing_in_some_of_those_that_come_beside_it() -> None:
    found = [beside(ROWS, ROWS, Random(number)) for number in range(60)]
    for name in ("client_id", "queue_id", "group", "incarnation", "message_id"):
        before = {getattr(row, name) for row in ROWS}
        assert any(before < {getattr(row, name) for row in rows} for rows in found), name


def test_each_number_is_one_more_and_one_less_and_not_told() -> None:
    values = {row.queue_offset for rows in told_otherwise(ROWS) for row in rows}
    assert {16, 17, 18, None} <= values
