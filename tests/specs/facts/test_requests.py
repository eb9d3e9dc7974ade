"""Until when a request may have been applied, as a small history tells; a request may be late by 3 s."""

from __future__ import annotations

import pytest

from specs.facts.columns import NEVER, NONE
from specs.facts.lookups import answers, each_lane
from specs.facts.requests import may_apply_until
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import ints
from specs.history.store import rows_to_table
from specs.history.text import parse_history

LANE = "billing/orders/b0/3"


def columns(text: str) -> Rows:
    info, rows = parse_history(text.replace("LANE", LANE))
    of_queues = [row for row in rows if row.queue_id is not None]
    return Rows(rows_to_table(of_queues), {info.run: RunContext.of_rows(info, rows)})


APPLIED = (
    ("answered at once, and the frame may come again", "0ms..1ms alice commits LANE value=5 ok", 3_000),
    ("sent without an answer", "0ms alice commits LANE value=5 sent", 3_000),
    ("answered late", "0ms..9s alice commits LANE value=5 ok", 9_000),
    ("answered with unknown", "0ms..9s alice commits LANE value=5 unknown", 9_000),
    ("never ended", "0ms.. alice commits LANE value=5", NEVER // 1_000),
    ("its client died", "0ms.. alice commits LANE value=5\n9s alice crashes -", 9_000),
    ("its client died at once", "0ms.. alice commits LANE value=5\n1s alice crashes -", 3_000),
    ("another client died", "0ms.. alice commits LANE value=5\n9s bob crashes -", NEVER // 1_000),
    ("its client stood still", "0ms alice commits LANE value=5 sent\n1s..8s alice pauses -", 11_000),
    ("another client stood still", "0ms alice commits LANE value=5 sent\n1s..8s bob pauses -", 3_000),
    ("its link was cut", "0ms alice commits LANE value=5 sent\n"
     "1s..8s rig suffers - detail='partition alice b0' ok", 11_000),
    ("it was cut later", "0ms alice commits LANE value=5 sent\n"
     "4s..8s rig suffers - detail='partition alice b0' ok", 3_000),
)  # fmt: skip


@pytest.mark.parametrize(("what", "text", "ms"), APPLIED, ids=[each[0] for each in APPLIED])
def test_a_request_may_be_applied_as_long_as_something_may_hold_it_up(
    what: str, text: str, ms: int
) -> None:
    rows = columns(text)
    assert (may_apply_until(rows, ints([0])) // 1_000).tolist() == [ms]


def test_it_may_wait_at_the_broker_besides() -> None:
    rows = columns("0ms alice commits LANE value=5 sent")
    assert may_apply_until(rows, ints([0]), 1_000_000).tolist() == [4_000_000]


LOOK_UPS = (
    ("an offset", "0ms..1ms alice fetches LANE value=5 ok", 5),
    ("nothing is stored", "0ms..1ms alice fetches LANE value=-1 refused", -1),
    ("an error", "0ms..1ms alice fetches LANE refused", NONE),
    ("no answer", "0ms.. alice fetches LANE", NONE),
)


@pytest.mark.parametrize(("what", "text", "told"), LOOK_UPS, ids=[each[0] for each in LOOK_UPS])
def test_a_look_up_is_told(what: str, text: str, told: int) -> None:
    assert answers(columns(text)).tolist() == [told]


def test_what_is_stored_for_a_lane_is_set_by_what_was_not_refused() -> None:
    """By commits and resets that may be applied late; lanes without an answered look-up are passed over."""
    rows = columns(
        "0ms alice commits LANE value=5 sent\n"
        "1ms alice commits LANE value=6 refused\n"
        "2ms..3ms ops resets LANE value=2 ok\n"
        "5s..5001ms alice fetches LANE value=2 ok\n"
        "6s alice commits LANE value=7 sent\n"
        "7s alice commits billing/orders/b0/4 value=7 sent"
    )
    ((lane, puts, looks),) = each_lane(rows)
    assert lane.tolist() == [0, 1, 2, 3, 4]
    assert looks.tolist() == [3]
    assert puts.where.tolist() == [0, 2, 4]
    assert puts.begun(int(rows.begin[3])).tolist() == [0, 2]
    assert puts.since(3_001_000, int(rows.begin[4])).tolist() == [2]
    assert puts.since(3_001_000, int(rows.begin[5])).tolist() == [2, 4]
