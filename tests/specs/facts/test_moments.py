"""What is asked of many moments at once is what a look at each event by itself says."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from specs.facts.columns import NOWHERE
from specs.facts.moments import Line
from specs.facts.segments import ints

SEEDS = range(40)
Events = list[tuple[int, int, int, int]]
"""Of each its position, key, moment and value, by moment."""


def drawn(seed: int) -> tuple[Events, Line, np.ndarray, list[tuple[int, int]]]:
    draw = Random(seed)
    size = draw.choice((0, 1, 5, 20))
    key, time, value = (ints([draw.randrange(9) for _ in range(size)]) for _ in range(3))
    time = ints(draw.sample(range(100), size))  # no two events are of one moment
    where = ints([at for at in range(size) if draw.random() < 0.8])
    events = [(at, int(key[at]), int(time[at]), int(value[at])) for at in where.tolist()]
    asked = [(draw.randrange(9), draw.randrange(100)) for _ in range(20)]
    return sorted(events, key=lambda event: event[2]), Line(key, time, where), value, asked


@pytest.mark.parametrize("seed", SEEDS)
def test_a_line_answers_as_each_event_says(seed: int) -> None:
    events, line, values, asked = drawn(seed)
    keys, times = ints(asked).T
    limits = ints([time % 9 for _, time in asked])

    def expected(index: int, what: str) -> int:
        mine = [event for event in events if event[1] == asked[index][0]]
        before = [event for event in mine if event[2] < asked[index][1]]
        highest = max((event[3] for event in before), default=None)
        few = {
            "last": before[-1:],
            "fitting": [event for event in before if event[3] < limits[index]][-1:],
            "highest": [event for event in before if event[3] == highest][:1],
            "reaching": [event for event in before if event[3] >= limits[index]][:1],
            "within": [event for event in mine if event[3] <= limits[index]][-1:],
        }
        return few[what][0][0] if few[what] else NOWHERE

    found = {
        "last": line.last_before(keys, times),
        "fitting": line.last_before_with(keys, times, lambda index, at: values[at] < limits[index]),
        "highest": line.highest_before(keys, times, values),
        "reaching": line.first_reaching(keys, times, values, limits),
        "within": line.last_within(keys, values, limits),
    }
    for what, places in found.items():
        assert places.tolist() == [expected(index, what) for index in range(len(asked))], what


@pytest.mark.parametrize("seed", SEEDS)
def test_a_line_names_every_event_that_fits_between_two_moments(seed: int) -> None:
    events, line, _values, asked = drawn(seed)
    keys, times = ints(asked).T
    indexes, places = line.between(keys, times - 30, times, lambda index, at: (index + at) % 3 > 0)
    assert list(zip(indexes.tolist(), places.tolist(), strict=True)) == [
        (index, event[0])
        for index, (key, time) in enumerate(asked)
        for event in events
        if event[1] == key and time - 30 < event[2] < time and (index + event[0]) % 3 > 0
    ]
