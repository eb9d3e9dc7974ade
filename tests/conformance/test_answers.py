"""A question to a system comes to a value, none, or not told; silence is never taken for either of the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance import answers
from conformance.answers import NotTold, Told, ask_again, ask_until
from conformance.waiting import pass_time

SILENT = NotTold("b0 said nothing")


def said(*told: Told[int]) -> Iterator[Told[int]]:
    yield from told
    while True:
        yield told[-1]


def test_not_told_is_neither_yes_nor_no() -> None:
    with pytest.raises(TypeError, match="b0 said nothing: that is neither a value nor none"):
        bool(SILENT or 0)


@pytest.mark.parametrize("told", [0, None, 7])
def test_what_was_not_told_is_asked_again(told: int | None) -> None:
    answer = said(SILENT, SILENT, told)
    assert ask_again(lambda: next(answer), 5.0) == told


def test_who_is_never_told_says_so() -> None:
    assert ask_again(lambda: SILENT, 0.05) == SILENT


def test_another_answer_is_right_only_until_the_deadline() -> None:
    answer = said(3, 4)
    assert ask_until(lambda end: end == 4, lambda: next(answer), 5.0) == 4
    assert ask_until(lambda end: end == 5, lambda: next(answer), 0.05) == 4


def test_no_deadline_runs_on_for_who_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer that comes late is not yet right: what was to happen until then happens from now on."""
    monkeypatch.setattr(answers, "SLOW_S", 0.1)
    asked = iter(range(100))

    def late_once() -> int:
        number = next(asked)
        pass_time(0.3 if number == 0 else 0.0)
        return number

    assert ask_until(lambda end: end == 3, late_once, 0.2) == 3


def test_who_answers_too_late_each_time_has_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "SLOW_S", -1.0)
    monkeypatch.setattr(answers, "ASK_AGAIN_S", 0.05)
    assert isinstance(ask_until(lambda end: end == 3, lambda: 4, 0.05), NotTold)
