"""For how long a client waited for answers, as a small history tells."""

from __future__ import annotations

import pytest

from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.waits import Waits
from specs.history.store import rows_to_table
from specs.history.text import parse_history
from specs.vocabulary import Kind

LANE, OTHER = "billing/orders/b0/3", "billing/orders/b1/0"
ADD = f"100ms alice adds {LANE} value=17"

WAITED = (
    ("nothing", "", 0),
    ("a request for another lane", f"10ms..40ms alice locks {OTHER} ok", 30),
    ("two at once", f"10ms..40ms alice locks {OTHER} ok\n20ms..60ms alice locks {LANE} ok", 50),
    ("from before that time", f"1ms..40ms alice locks {OTHER} ok", 35),
    ("somebody else's", f"10ms..40ms bob locks {OTHER} ok", 0),
    ("a pull that never got an answer", f"10ms..40ms alice pulls {LANE} offset=1 unknown", 30),
    ("a pull that got one", f"10ms..40ms alice pulls {LANE} offset=1 value=2 ok", 0),
)


@pytest.mark.parametrize(("what", "asked", "ms"), WAITED, ids=[each[0] for each in WAITED])
def test_a_client_waits_for_what_it_asked(what: str, asked: str, ms: int) -> None:
    info, rows = parse_history(f"{asked}\n{ADD}")
    found = Rows(rows_to_table(rows), {info.run: RunContext.of_rows(info, rows)})
    assert Waits(found).us(len(rows) - 1, 5_000) == 1000 * ms


def test_of_one_lane_only_what_it_asked_for_that_counts() -> None:
    asked = f"""
        1ms..40ms  alice locks   {OTHER} ok
        10ms..20ms alice locks   {LANE} ok
        30ms..50ms alice fetches {LANE} value=17 ok
        60ms..200ms alice locks  {LANE} ok
    """
    info, rows = parse_history(f"{asked}\n{ADD}")
    found = Rows(rows_to_table(rows), {info.run: RunContext.of_rows(info, rows)})
    assert Waits(found, Kind.LOCK).us(len(rows) - 1, 15_000) == 5_000 + 40_000


def test_it_waits_still_for_what_was_never_answered_in_its_present_life() -> None:
    asked = f"10ms.. alice locks {OTHER}"
    for between, is_waiting in (
        ("", True),
        ("20ms alice crashes -\n30ms alice joins billing", False),
    ):
        info, rows = parse_history(f"{asked}\n{between}\n{ADD}")
        of_queues = [row for row in rows if row.queue_id is not None]
        found = Rows(rows_to_table(of_queues), {info.run: RunContext.of_rows(info, rows)})
        assert Waits(found).last_still(len(of_queues) - 1) == is_waiting
