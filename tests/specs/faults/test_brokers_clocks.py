"""What shows that a broker stood still, or that its wall clock was stepped, where it writes down nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specs.history.row import Row, make_row
from specs.plan.step import Step
from specs.vocabulary import Kind, Outcome

STEP = Step("clock_step", {"node": "b0", "ms": 500})
NO_STEP = Step("clock_step", {"node": "b0", "ms": 0})
PAUSE = Step("pause", {"node": "b0"})


def row(kind: Kind, begin_ms: float, end_ms: float | None = None, **more: Any) -> Row:
    end = begin_ms if end_ms is None else end_ms
    return make_row(
        run="r",
        seq_begin=round(begin_ms * 10),
        seq_end=round(end * 10),
        kind=kind,
        process="harness",
        outcome=Outcome.OK,
        started_us=round(begin_ms * 1000),
        ended_us=round(end * 1000),
        **more,
    )


def stored(number: int, at_ms: float, says_ms: int, *, lasts_ms: float = 1) -> Sequence[Row]:
    """A send, and its message as it is read back: when the broker says that it stored it."""
    told = {"message_id": f"m{number}", "broker": "b0"}
    return (
        row(Kind.SEND, at_ms, at_ms + lasts_ms, **told),
        row(Kind.READ, 10_000 + number, wall_us=says_ms * 1000, **told),
    )


def shown(step: Step, *rows: Row) -> str | None:
    fault = row(Kind.FAULT, 100, 100, detail=step.detail)
    clock_step = row(Kind.CLOCK_STEP, 100, broker="b0", value=step.args.get("ms"))
    return step.attest((fault, clock_step, *rows), fault)


def test_a_step_shows_in_the_times_of_what_was_stored_before_and_after() -> None:
    before, after = stored(1, 50, 1_050), stored(2, 150, 1_650)
    told = shown(STEP, *before, *after)
    assert told == ("the clock of b0 stepped by 498 ms to 502 ms, by the times of what it stored")
    assert shown(NO_STEP, *before, *after) is None


def test_what_a_send_leaves_open_is_no_step() -> None:
    """The message of a send that took long may have been stored at any moment of it."""
    before = stored(1, 50, 1_050)
    assert shown(STEP, *before, *stored(2, 150, 1_650, lasts_ms=600)) is None
    assert shown(STEP, *before, *stored(2, 150, 1_150)) is None
    assert shown(STEP, *before) is None


def test_a_dead_letter_of_the_messages_name_was_stored_at_another_time() -> None:
    before, after = stored(1, 50, 1_050), stored(2, 150, 1_650)
    letter = after[1]._replace(topic="%DLQ%billing", wall_us=9_000_000)
    told = shown(STEP, *before, *after)
    assert told is not None
    assert shown(STEP, *before, *after, letter) == told


def test_times_that_contradict_each_other_prove_nothing() -> None:
    before, later = stored(1, 50, 1_050), stored(3, 160, 4_660)
    assert shown(STEP, *before, *stored(2, 150, 1_650), *later) is None


def test_what_came_after_another_step_does_not_count() -> None:
    again = row(Kind.CLOCK_STEP, 120, broker="b0", value=-500)
    before, after = stored(1, 50, 1_050), stored(2, 150, 1_150)
    assert shown(STEP, *before, again, *after) is None
    assert shown(STEP, *before, *stored(3, 105, 1_605), again, *after) is not None


def test_a_frozen_broker_shows_in_requests_that_wait_until_it_goes_on() -> None:
    told = {"broker": "b0"}
    fault = row(Kind.FAULT, 100, 200, detail=PAUSE.detail)
    pause = row(Kind.PAUSE, 100, 200, **told)
    anew, before = row(Kind.SEND, 110, 201, **told), row(Kind.SEND, 90, 201, **told)
    answered = row(Kind.SEND, 110, 180, **told)
    assert PAUSE.attest((fault, pause, anew), fault) is not None
    assert PAUSE.attest((fault, pause, before), fault) is not None
    assert PAUSE.attest((fault, pause, before, answered), fault) is None
    assert PAUSE.attest((fault, pause, answered), fault) is None
