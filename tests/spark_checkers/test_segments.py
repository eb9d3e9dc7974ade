"""The arithmetic on whole arrays says what a loop over rows would say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spark_checkers.segments import NOWHERE, Segments, Timeline, dense, is_first

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
    previous, marked, count, highest, number = [], [], [], [], []
    for index, (mine, _value, _mark) in enumerate(drawn):
        before = [other for other in range(index) if drawn[other][0] == mine]
        previous.append(before[-1] if before else NOWHERE)
        marks = [other for other in before if drawn[other][2]]
        marked.append(marks[-1] if marks else NOWHERE)
        count.append(len(marks))
        highest.append(max(before, key=lambda other: (drawn[other][1], -other), default=NOWHERE))
        number.append(len(before))
    assert segments.previous().tolist() == previous
    assert segments.last_before(mark).tolist() == marked
    assert segments.count_before(mark).tolist() == count
    assert segments.highest_before(value).tolist() == highest
    assert segments.number().tolist() == number


@given(rows, rows)
def test_the_last_event_before_a_moment(
    events: list[tuple[int, int, bool]], moments: list[tuple[int, int, bool]]
) -> None:
    segment, time, _ = columns(events)
    line = Timeline(segment, time)
    asked, at, _ = columns(moments)
    last, first, count = [], [], []
    for mine, moment, _mark in moments:
        before = [
            index
            for index, (other, then, _) in enumerate(events)
            if other == mine and then < moment
        ]
        after = [
            index
            for index, (other, then, _) in enumerate(events)
            if other == mine and then >= moment
        ]
        last.append(max(before, key=lambda index: (events[index][1], index), default=NOWHERE))
        first.append(min(after, key=lambda index: (events[index][1], index), default=NOWHERE))
        count.append(len(before))
    assert line.last_before(asked, at).tolist() == last
    assert line.first_from(asked, at).tolist() == first
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
