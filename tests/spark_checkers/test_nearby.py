"""What is near a history: longer, of more groups, and at the bounds that its configuration sets."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from nearby import nearby

from specs.clauses.catalogue import get
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history
from specs.vocabulary import Kind, Level

TURNS = 120
BEFORE = parse_history(
    """
0ms         alice  locks     billing/orders/b0/3   ok
1ms         alice  adds      billing/orders/b0/3   value=17
2ms..5ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 success
6ms..9ms    alice  commits   billing/orders/b0/3   value=18 ok
60s..61s    bob    locks     billing/orders/b0/3   ok
"""
)


def histories() -> list[tuple[RunInfo, list[Row]]]:
    info, rows = BEFORE
    return [nearby(info, rows, Random(turn), ("broker_lease_ms",)) for turn in range(TURNS)]


def calls_in_turn(rows: list[Row]) -> int:
    """How many calls of one client follow each other, with nothing else between them, at most."""
    length = longest = 0
    for before, row in pairwise(row for row in rows if row.level is not Level.WIRE):
        goes_on = (row.kind, row.client_id) == (before.kind, before.client_id)
        length = length + 1 if goes_on and row.kind is Kind.DELIVER else 0
        longest = max(longest, length)
    return longest


def test_the_same_draw_gives_the_same_history() -> None:
    assert histories() == histories()


def test_some_are_of_a_client_that_goes_on_for_long() -> None:
    assert max(calls_in_turn(rows) for _, rows in histories()) >= 20


def test_some_are_of_several_groups_on_one_queue() -> None:
    groups = [
        {row.group for row in rows if row.kind is Kind.DELIVER} - {None} for _, rows in histories()
    ]
    assert {1, 2} <= {len(each) for each in groups}


def test_some_durations_are_as_long_as_a_bound_and_some_a_hair_longer_or_shorter() -> None:
    """Of the setting that matters to who asks."""
    assert get("LSE-4").settings == {"broker_lease_ms"}
    found = set()
    for info, rows in histories():
        marks = {mark for row in rows for mark in (row.started_us, row.ended_us)} - {None}
        lease_us = info.config.broker_lease_ms * 1000
        found |= {later - earlier - lease_us for earlier in marks for later in marks}
    assert {-1000, -1, 0, 1, 1000} <= found


def test_every_row_has_its_place() -> None:
    """By its times, and no two moments at one."""
    for _, rows in histories():
        places = [seq for row in rows for seq in {row.seq_begin, row.seq_end} - {None}]
        assert len(set(places)) == len(places)
        assert [row.seq_begin for row in rows] == sorted(row.seq_begin for row in rows)
