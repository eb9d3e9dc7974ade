"""What a fault did shows too where clients try again by themselves, and where other nodes took over."""

from __future__ import annotations

from typing import Any

from specs.faults import FAULTS
from specs.history.row import Row, make_row
from specs.plan.step import Step
from specs.vocabulary import Kind, Outcome

CUT = Step("cut", {"a": "everybody", "b": "b0"})
CRASH = Step("broker_crash", {"broker": "b0"})


def row(kind: Kind, begin_ms: int, end_ms: int | None = None, **more: Any) -> Row:
    end = begin_ms if end_ms is None else end_ms
    return make_row(
        run="r",
        seq_begin=begin_ms,
        seq_end=end,
        op_id=begin_ms,
        kind=kind,
        process="c1",
        outcome=Outcome.OK,
        started_us=begin_ms * 1000,
        ended_us=end * 1000,
        clock="here",
        wall_us=0,
        **more,
    )


def shown(step: Step, *rows: Row) -> str | None:
    fault = row(Kind.FAULT, 100, 200, detail=step.detail)
    assert FAULTS[step.do]
    return step.attest(rows, fault)


def test_a_cut_shows_where_nothing_was_answered_before_its_end() -> None:
    assert shown(CUT, row(Kind.SEND, 110, 205), row(Kind.SEND, 150, 230)) is not None
    assert shown(CUT, row(Kind.SEND, 110, 205), row(Kind.SEND, 150, 160)) is None
    assert shown(CUT) is None


def test_the_death_of_one_node_of_several_is_told_by_its_row() -> None:
    crash = row(Kind.CRASH, 101, broker="b0", value=2)
    assert shown(CRASH, crash) == "one node of b0 died, and 2 lived on"
    assert shown(CRASH, crash._replace(value=None)) is None
    assert shown(CRASH, crash._replace(broker="b1")) is None


def test_a_death_shows_where_nothing_was_answered_before_the_broker_was_back() -> None:
    """A Kafka producer sends again until it is answered, and tells of no failure."""
    crash = row(Kind.CRASH, 101, broker="b0")
    waited = [row(Kind.SEND, begin, begin + 100, broker="b0") for begin in (105, 150)]
    before = row(Kind.SEND, 100, 101, broker="b0")
    assert shown(CRASH, before, crash, *waited) is not None
    assert shown(CRASH, crash, *waited, row(Kind.SEND, 160, 170, broker="b0")) is None
    assert shown(CRASH, before, *waited) is None
    assert shown(CRASH, crash, row(Kind.SEND, 150, 250, broker="b1")) is None


def test_where_nobody_asks_anew_those_that_wait_show_it() -> None:
    """A producer with as much in flight as it may have begins nothing until it is answered."""
    crash = row(Kind.CRASH, 101, broker="b0")
    waited = row(Kind.SEND, 90, 205, broker="b0")
    assert shown(CRASH, crash, waited) is not None
    assert shown(CRASH, crash, waited, row(Kind.SEND, 95, 180, broker="b0")) is None
    assert shown(CRASH, crash, row(Kind.SEND, 90, 100, broker="b0")) is None
    assert shown(CUT, row(Kind.SEND, 90, 205)) is not None
