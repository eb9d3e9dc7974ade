"""Which answers of a store a witness tells, and when."""

from __future__ import annotations

import itertools

from conformance.drivers.witness import Floors
from specs.vocabulary import Lane

LANE = Lane("billing", "orders", "b0", 3)
OTHER = LANE._replace(queue_id=4)
S = 1_000_000


def told(floors: Floors, seconds: int, value: int = 7) -> list[int]:
    """At which of so many seconds the answer is told."""
    return [at for at in range(seconds) if floors.is_told(LANE, value, at * S)]


def test_an_answer_that_stays_is_told_again_ever_more_seldom() -> None:
    """No gap is longer than a quarter of the time for which it has stayed, and the question's own."""
    moments = told(Floors(), 600)
    assert moments[:6] == [0, 1, 2, 3, 4, 5]
    pairs = list(itertools.pairwise(moments))
    assert max(after - before - before / 4 for before, after in pairs) <= 1
    assert len(moments) < 30


def test_a_new_answer_is_told_at_once_and_often_again() -> None:
    floors = Floors()
    told(floors, 600)
    assert [floors.is_told(LANE, 8, at * S) for at in (600, 601, 602)] == [True] * 3


def test_lanes_are_told_apart() -> None:
    floors = Floors()
    assert floors.is_told(LANE, 7, 0)
    assert floors.is_told(OTHER, 7, 1)
    assert not floors.is_told(LANE, 7, 2)
