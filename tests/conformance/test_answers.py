"""A question to a system comes to a value, none, or not told; silence is never taken for either of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance import answers
from conformance.answers import NotTold, Quiet, Told, ask_again, ask_until
from conformance.targets import base
from conformance.targets.base import Run, Target
from conformance.waiting import pass_time
from specs.plan.config import Config
from specs.plan.plan import Plan

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


def test_it_is_quiet_since_something_happened_or_somebody_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 0.5, 1.0, 1.5, 2.0, 4.0, 4.5])
    monkeypatch.setattr(answers, "now_s", lambda: next(clock))
    quiet = Quiet()
    seen = [quiet.look(is_quiet=each) for each in (True, True, False, True, True, True)]
    # From 2.0 to 4.0 nobody looked: this process, or who was asked, stood still.
    assert seen == [0.5, 1.0, 0.0, 0.5, 0.0, 0.5]


def test_a_long_wait_lets_a_look_be_late_by_a_tenth_of_it_and_by_three_seconds_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wait_s, looks in ((5.0, [1.0, 0.0]), (20.0, [1.0, 3.0]), (200.0, [1.0, 3.0, 6.0, 0.0])):
        clock = iter([0.0, 1.0, 3.0, 6.0, 9.1])
        monkeypatch.setattr(answers, "now_s", lambda clock=clock: next(clock))
        quiet = Quiet(wait_s)
        assert [quiet.look(is_quiet=True) for _ in looks] == looks


def test_who_stands_still_is_not_at_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait begins anew each time, and a run in which somebody never answers does not come to rest."""
    monkeypatch.setattr(base, "AWAKE_LOOK_S", 0.05)
    config = replace(Config(), broker_lease_ms=300, rebalance_ms=0, suspend_ms=0)
    plan = Plan(config=config, settle_ms=2_000)
    slept = iter([True, False])

    class Sleeper(Target):
        awake = staticmethod(lambda: next(slept, True))

        async def is_awake(self) -> bool:
            return self.awake()

    Sleeper.__abstractmethods__ = frozenset()
    run, asleep = Run(plan, tmp_path), Sleeper()
    assert asyncio.run(asleep.settle(run))
    assert list(slept) == []  # it was asked until it had stood still, and once more
    asleep.awake = lambda: False
    assert not asyncio.run(asleep.settle(run))
