"""What shows that a broker's disk was slow, and that a plan in which it is has a broker that waits for it."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.runner import plan_of
from chaos.scenario import scenario_of
from specs.errors import UsageError
from specs.history.row import Row, make_row
from specs.plan.config import IN_SYNC, Config
from specs.plan.step import Step
from specs.vocabulary import Kind, Outcome

STEP = Step("slow_disk", {"broker": "b0", "ms": 100})


def row(kind: Kind, begin_ms: float, end_ms: float | None, **more: Any) -> Row:
    return make_row(
        kind=kind,
        started_us=round(begin_ms * 1_000),
        ended_us=None if end_ms is None else round(end_ms * 1_000),
        **{"outcome": Outcome.OK, **more},
    )


def shown(*rows: Row, step: Step = STEP) -> str | None:
    fault = row(Kind.FAULT, 1_000, 2_000, detail=step.detail)
    return step.attest((fault, *rows), fault)


def sent(at_ms: float, took_ms: float, **more: Any) -> Row:
    return row(Kind.SEND, at_ms, at_ms + took_ms, **{"broker": "b0", **more})


def test_sends_that_waited_for_their_sync_show_it() -> None:
    told = "the median of 2 sends took 104 ms instead of 3.0 ms"
    assert shown(sent(500, 3), sent(1_100, 103), sent(1_300, 105), sent(2_500, 3)) == told
    assert shown(sent(500, 3), sent(1_100, 103), step=Step("slow_disk", {"broker": "b0"})) is None


@pytest.mark.parametrize(
    "other",
    [
        sent(1_100, 40),
        sent(1_100, 103, broker="b1"),
        sent(1_100, 103, outcome=Outcome.REFUSED),
        sent(2_100, 103),
        row(Kind.SEND, 1_100, None, broker="b0"),
    ],
    ids=["too quick", "of another broker", "refused", "afterwards", "never answered"],
)
def test_any_other_send_is_no_sign_of_it(other: Row) -> None:
    assert shown(sent(500, 3), other) is None


def test_what_is_usual_is_told_by_neither_of_two_times_at_which_it_was_slow() -> None:
    again = row(Kind.FAULT, 3_000, 4_000, detail=STEP.detail)
    late = [sent(3_000 + 10 * number, 110) for number in range(5)]
    assert shown(sent(500, 3), sent(1_100, 103), again, *late) is not None


def scenario(**config: Any) -> Any:
    fault = {"do": "slow_disk", "client": "c1", "ms": 80, "for_ms": 900}
    return scenario_of("mine", {"why": "x", "config": config, "fault": [fault]})


def test_a_plan_whose_disk_is_slow_has_a_broker_that_answers_after_the_sync() -> None:
    """Where nothing is said of it: nobody would notice otherwise."""
    assert plan_of(scenario(), Config(), 1).config.flush == IN_SYNC
    told = Config(flush="async")
    assert plan_of(scenario(flush="async"), told, 1).config.flush == "async"


def test_a_disk_is_never_quicker_than_it_is() -> None:
    fault = {"do": "slow_disk", "client": "c1", "ms": -80}
    with pytest.raises(UsageError, match="ms is a whole number from 0"):
        scenario_of("mine", {"why": "x", "fault": [fault]})
