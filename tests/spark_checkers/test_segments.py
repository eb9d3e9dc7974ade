"""The arithmetic on whole arrays says what a loop over rows would say."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specs.facts.columns import NONE, NOWHERE
from specs.facts.segments import (
    Peaks,
    Segments,
    Spans,
    Timeline,
    by_number,
    dense,
    distinct,
    first_fitting,
    highest_so_far,
    ints,
    is_first,
    pairs,
)

HUGE = 2**60
rows = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(-3, 3) | st.sampled_from((-HUGE, HUGE)), st.booleans()
    ),
    max_size=30,
)


def columns(drawn: list[tuple[int, int, bool]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.asarray([segment for segment, _, _ in drawn], np.int64),
        np.asarray([value for _, value, _ in drawn], np.int64),
        np.asarray([mark for _, _, mark in drawn], np.bool_),
    )


@given(rows)
def test_questions_about_rows_before(drawn: list[tuple[int, int, bool]]) -> None:
    segment, value, mark = columns(drawn)
    segments = Segments(segment)
    previous, marked, count, highest, nth = [], [], [], [], []
    for index, (mine, _value, _mark) in enumerate(drawn):
        before = [other for other in range(index) if drawn[other][0] == mine]
        previous.append(before[-1] if before else NOWHERE)
        marks = [other for other in before if drawn[other][2]]
        marked.append(marks[-1] if marks else NOWHERE)
        count.append(len(marks))
        nth.append(len(before))
        highest.append(max(before, key=lambda other: (drawn[other][1], -other), default=NOWHERE))
    assert segments.previous().tolist() == previous
    assert segments.nth().tolist() == nth
    assert segments.last_before(mark).tolist() == marked
    assert segments.count_before(mark).tolist() == count
    assert segments.highest_before(value).tolist() == highest


@given(rows, rows)
def test_the_last_event_before_a_moment(
    events: list[tuple[int, int, bool]], moments: list[tuple[int, int, bool]]
) -> None:
    segment, time, _ = columns(events)
    line = Timeline(segment, time)
    asked, at, _ = columns(moments)
    last, count = [], []
    for mine, moment, _mark in moments:
        before = [
            index
            for index, (other, then, _) in enumerate(events)
            if other == mine and then < moment
        ]
        last.append(max(before, key=lambda index: (events[index][1], index), default=NOWHERE))
        count.append(len(before))
    assert line.last_before(asked, at).tolist() == last
    assert line.count_before(asked, at).tolist() == count


@given(rows)
def test_numbers_of_combinations(drawn: list[tuple[int, int, bool]]) -> None:
    segment, value, mark = columns(drawn)
    code, count = dense(segment, value, mark.astype(np.int64))
    combinations = sorted({(a, b, c) for a, b, c in drawn})
    assert code.tolist() == [combinations.index(each) for each in drawn]
    assert count == len(combinations)
    seen: set[tuple[int, int]] = set()
    firsts = []
    for each in drawn:
        firsts.append(each[:2] not in seen)
        seen.add(each[:2])
    assert is_first(segment, value).tolist() == firsts


@given(rows, rows, rows)
def test_the_first_span_that_covers_a_number(
    spans: list[tuple[int, int, bool]],
    lengths: list[tuple[int, int, bool]],
    asked: list[tuple[int, int, bool]],
) -> None:
    size = min(len(spans), len(lengths))
    segment, low, _ = columns(spans[:size])
    time, length, _ = columns(lengths[:size])
    high = low + np.clip(length, 0, 3)
    mine, number, _ = columns(asked)
    until = np.arange(len(asked), dtype=np.int64) % 5
    expected = []
    for who, what, before in zip(mine.tolist(), number.tolist(), until.tolist(), strict=True):
        covering = [
            index
            for index in range(size)
            if segment[index] == who and low[index] <= what < high[index] and time[index] < before
        ]
        expected.append(min(covering, key=lambda index: time[index], default=NOWHERE))
    found = Spans(segment, low, high, time).first_covering(mine, number, until)
    assert found.tolist() == expected


@given(rows)
def test_the_highest_so_far(drawn: list[tuple[int, int, bool]]) -> None:
    segment, value, _ = columns(sorted(drawn, key=lambda each: each[0]))
    expected = []
    for index, mine in enumerate(segment.tolist()):
        before = [other for other in range(index + 1) if segment[other] == mine]
        expected.append(max(before, key=lambda other: (value[other], -other)))
    assert highest_so_far(segment, value).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))), st.sampled_from((1, -1)))
def test_the_first_and_the_last_place_that_fits(ranges: list[tuple[int, int]], step: int) -> None:
    start, stop = (np.asarray([each[side] for each in ranges], np.int64) for side in (0, 1))
    found = first_fitting(start, stop, lambda index, place: (place + index) % 3 == 0, step=step)
    expected = []
    for index, (low, high) in enumerate(ranges):
        fits = [place for place in range(low, high) if (place + index) % 3 == 0]
        expected.append((fits[0] if step > 0 else fits[-1]) if fits else NOWHERE)
    assert found.tolist() == expected
    every = [
        (index, place) for index, (low, high) in enumerate(ranges) for place in range(low, high)
    ]
    beside = [
        pair
        for index, place in pairs(start, stop)
        for pair in zip(index.tolist(), place.tolist(), strict=True)
    ]
    assert beside == every


@given(
    st.lists(st.integers(0, 5), max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 6)), max_size=9),
)
def test_the_next_place_that_is_high_enough(
    values: list[int], asked: list[tuple[int, int, int]]
) -> None:
    size, peaks = len(values), Peaks(np.asarray(values, np.int64))
    start, stop, least = np.asarray(asked, np.int64).reshape(-1, 3).T
    start, stop = np.minimum(start, size), np.minimum(stop, size)
    high = [
        [place for place in range(low, until) if values[place] >= height]
        for low, until, height in zip(start, stop, least, strict=True)
    ]
    expected = [next(iter(places), NOWHERE) for places in high]
    assert peaks.first_reaching(start, stop, least).tolist() == expected
    odd = peaks.first_fitting(start, stop, least, lambda index, place: place % 2 == 1)
    expected = [next((each for each in places if each % 2), NOWHERE) for places in high]
    assert odd.tolist() == expected


NUMBERS = st.sampled_from(
    [0, 1, 1 << 15, 1 << 16, 1 << 31, 1 << 33, 1 << 47, 1 << 50, -5, NONE + 1]
)


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(-3, 3), NUMBERS), max_size=40), st.booleans())
def test_positions_by_number_keep_the_order_of_equal_ones(numbers: list[int], long: bool) -> None:
    """However far apart they are, and also where some of very many are out of order."""
    values = ints([*(range(300) if long else ()), *numbers])
    assert by_number(values).tolist() == np.argsort(values, kind="stable").tolist()
    assert distinct(values).tolist() == np.unique(values).tolist()
