"""A sequential test: what comes often is kept, what comes seldom is dropped, both after few tries, and none is lost."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from random import Random

import pytest

from conformance.reports.rate import Rate
from conformance.sequential import MOST, SequentialTest, Tries, side_by_side
from specs.errors import UsageError

TOGETHER_S = 20.0
TEST = SequentialTest()


@pytest.mark.parametrize(
    ("tries", "kept"),
    [
        ([], None),
        ([True], None),
        ([True, True], True),
        ([True, False, True], True),
        ([False] * 3, None),
        ([False] * 4, False),
        ([True, *[False] * 6], None),
        ([True, *[False] * 7], False),
    ],
)
def test_it_ends_as_soon_as_one_of_two_rates_is_unlikely(
    tries: list[bool], kept: bool | None
) -> None:
    assert TEST.keeps(tries) is kept


@pytest.mark.parametrize("often", [0.2, 0.5, 0.8])
def test_it_is_wrong_about_as_seldom_as_it_says(often: float) -> None:
    """By drawn tries; what is as rare as `rare` is kept seldom, what is as often as `often` dropped seldom."""
    test = SequentialTest(often, most=100)
    dice = Random(1)

    def share_kept(rate: float) -> float:
        kept = 0
        for _ in range(2_000):
            tries: list[bool] = []
            while (decided := test.keeps(tries)) is None:
                tries.append(dice.random() < rate)
            kept += decided
        return kept / 2_000

    assert share_kept(test.rare) < 0.13
    assert share_kept(often) > 0.87


def test_what_is_undecided_for_too_long_is_dropped() -> None:
    test = SequentialTest(0.2)
    tries = [True, *[False] * (MOST - 1)]
    assert (test.keeps(tries[:-1]), test.keeps(tries)) == (None, False)


@pytest.mark.parametrize(
    ("tries", "often"), [((True,), 0.8), ((True, False), 0.5), ((True, *[False] * 19), 0.2)]
)
def test_what_is_kept_is_as_often_as_what_was_found(tries: tuple[bool, ...], often: float) -> None:
    assert SequentialTest.like(Rate(("LSE-1",), tries)).often == often


def test_tries_that_were_made_are_not_made_again(tmp_path: Path) -> None:
    """A second search with the same memory asks only for what is new; one about something else forgets it."""
    memory, asked = tmp_path / "tries.json", list[tuple[str, int]]()

    def once(candidate: str, number: int) -> bool:
        asked.append((candidate, number))
        return candidate == "red"

    def tries(about: str = "a run") -> Tries[str]:
        return Tries([once], str, memory=memory, about=about)

    first = tries()
    assert [first.show(each, TEST) for each in ("red", "green")] == [True, False]
    made = list(asked)
    assert made == [("red", 1), ("red", 2), *(("green", number) for number in range(3, 7))]
    second = tries()
    assert [second.show(each, TEST) for each in ("red", "green", "new")] == [True, False, False]
    assert asked[len(made) :] == [("new", number) for number in range(7, 11)]
    assert tries("another run").of("red") == ()


def test_a_memory_that_is_none_is_refused(tmp_path: Path) -> None:
    memory = tmp_path / "tries.json"
    memory.write_text(json.dumps(["no memory"]))
    with pytest.raises(UsageError, match="delete it to begin anew"):
        Tries([lambda candidate, number: True], str, memory=memory)


def test_when_the_time_is_over_nothing_is_tried_and_nothing_is_kept() -> None:
    left = [True] * 3

    def once(candidate: str, number: int) -> bool:
        return left.pop()

    tries = Tries([once], str, is_over=lambda: len(left) < 3)
    assert not tries.show("red", TEST)
    assert tries.rate("red", "LSE-1", 9).tries == (True,)


def test_several_tries_are_made_side_by_side_and_no_more_than_asked_for() -> None:
    together = threading.Barrier(2)

    def once(candidate: str, number: int) -> bool:
        together.wait(TOGETHER_S)
        return number % 2 == 0

    assert Tries([once, once], str).rate("red", "LSE-1", 4).tries == (False, True, False, True)
    alone = Tries([lambda candidate, number: True] * 4, str)
    assert alone.rate("red", "LSE-1", 3).tries == (True,) * 3


def test_what_one_of_them_raises_is_raised() -> None:
    def fails() -> bool:
        raise UsageError("nobody is there")

    with pytest.raises(UsageError, match="nobody is there"):
        side_by_side([fails, lambda: True])
