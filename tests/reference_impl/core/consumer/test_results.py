"""Every row of the result table, through a whole consumer, in both commit modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reference_impl.core.consumer.results import RESULTS, Back, Rule, clamp_suspend
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Kind, Outcome

STATUSES = [
    Outcome.SUCCESS,
    Outcome.COMMIT,
    Outcome.ROLLBACK,
    Outcome.SUSPEND,
    Outcome.NULL,
    Outcome.THREW,
]


def test_the_table_has_every_status_in_both_modes() -> None:
    assert {(status, mode, False) for status in STATUSES for mode in CommitMode} <= RESULTS.keys()
    assert {
        (status, mode, True) for status in LISTENER_SUSPENDS for mode in CommitMode
    } <= RESULTS.keys()
    assert len(RESULTS) == 18


# result, manual: the offset afterwards (2 when the two messages before it count), the next call at once or after
# the pause, with which offsets
AUTO_TWO_DONE = [
    (Outcome.SUCCESS, False, 3, "at once", [3]),
    (Outcome.COMMIT, False, 3, "at once", [3]),
    (Outcome.ROLLBACK, False, 3, "at once", [3]),
    (Outcome.SUSPEND, False, 2, "later", [2]),
    (Outcome.NULL, False, 2, "later", [2]),
    (Outcome.THREW, False, 2, "later", [2]),
]


@pytest.mark.parametrize(("outcome", "manual", "offset", "when", "then"), AUTO_TWO_DONE)
def test_auto_mode(
    bench: Any, outcome: Outcome, manual: bool, offset: int, when: str, then: list[int]
) -> None:
    """Two messages done in auto mode, the third ends as given."""
    b = bench().start()
    b.append(5)
    b.returns()
    b.returns()
    b.returns(outcome, manual=manual, suspend_ms=500)
    check(b, offset, when, then)


MANUAL_TWO_TAKEN = [
    (Outcome.SUCCESS, -1, "at once", [3]),
    (Outcome.COMMIT, 3, "at once", [3]),
    (Outcome.ROLLBACK, -1, "later", [0]),
    (Outcome.SUSPEND, -1, "later", [2]),
    (Outcome.NULL, -1, "later", [2]),
    (Outcome.THREW, -1, "later", [2]),
]


@pytest.mark.parametrize(("outcome", "offset", "when", "then"), MANUAL_TWO_TAKEN)
def test_manual_mode(bench: Any, outcome: Outcome, offset: int, when: str, then: list[int]) -> None:
    """Two messages taken and uncommitted in manual mode, the third ends as given."""
    b = bench().start()
    b.append(5)
    b.returns(manual=True)
    b.returns(manual=True)
    b.returns(outcome, manual=True, suspend_ms=500)
    check(b, offset, when, then)


def check(b: Any, offset: int, when: str, then: list[int]) -> None:
    (pq,) = b.consumer.lanes.values()
    assert pq.offset == offset
    if when == "later":
        assert b.offsets == []
        b.advance(499)
        assert b.offsets == []
        b.advance(1)
    assert b.offsets == then


def test_manual_rollback_replays_all_without_counting(bench: Any) -> None:
    b = bench().start()
    b.append(2)
    b.returns(manual=True)
    b.returns(Outcome.ROLLBACK, manual=True)
    b.advance(1000)
    rows = [seen.rows[0] for seen in b.of(Kind.DELIVER)]
    assert [row["queue_offset"] for row in rows] == [0, 1, 0]
    assert [row["reconsume_times"] for row in rows] == [0, 0, 0]
    assert [row["attempt"] for row in rows] == [1, 1, 2]


def test_manual_suspend_keeps_earlier_messages_for_the_later_commit(bench: Any) -> None:
    b = bench().start()
    b.append(2)
    b.returns(manual=True)
    b.returns(Outcome.SUSPEND, manual=True)
    b.advance(1000)
    assert b.offsets == [1]
    b.returns(Outcome.COMMIT, manual=True)
    (pq,) = b.consumer.lanes.values()
    assert (pq.offset, pq.count) == (2, 0)


@pytest.mark.parametrize("manual", [False, True])
@pytest.mark.parametrize("outcome", sorted(LISTENER_SUSPENDS))
def test_exhausted_and_acknowledged(bench: Any, outcome: Outcome, manual: bool) -> None:
    """Auto: the message is finished. Manual: it stays taken, the lane goes on, a later COMMIT passes it."""
    b = bench(max_reconsume_times=0).start()
    b.append(2)
    b.returns(outcome, manual=manual)
    assert b.offsets == [1]
    (pq,) = b.consumer.lanes.values()
    assert pq.offset == (-1 if manual else 1)
    b.returns(Outcome.COMMIT, manual=manual)
    assert pq.offset == 2


@pytest.mark.parametrize(
    ("asked", "default", "pause"),
    [
        (-1, 1000, 1000),
        (-1, 5, 10),
        (-1, 40_000, 30_000),
        (0, 1000, 10),
        (9, 1000, 10),
        (10, 1000, 10),
        (11, 1000, 11),
        (30_000, 1000, 30_000),
        (30_001, 1000, 30_000),
        (-2, 1000, 10),
    ],
)
def test_suspend_time_is_clamped(bench: Any, asked: int, default: int, pause: int) -> None:
    assert clamp_suspend(asked, default) == pause
    b = bench(suspend_ms=default).start()
    b.append(1)
    b.returns(Outcome.SUSPEND, suspend_ms=asked)
    assert b.of(Kind.DELIVER)[0].end_fields == {"commit_mode": "auto", "suspend_ms": pause}
    b.advance(pause - 1)
    assert b.offsets == []
    b.advance(1)
    assert b.offsets == [0]


def test_a_result_without_pause_names_none(one_message: Any) -> None:
    one_message.returns(Outcome.ROLLBACK)
    assert one_message.of(Kind.DELIVER)[0].end_fields == {"commit_mode": "auto"}


def test_rules_that_stop_put_something_back(bench: Callable[..., Any]) -> None:
    """No rule stops the loop and leaves the batch behind: the lane would wait for a message that never comes."""
    stopping = [rule for rule in RESULTS.values() if not rule.go_on]
    assert all(
        isinstance(rule, Rule) and rule.back is not Back.NONE and not rule.commit
        for rule in stopping
    )
