"""The abstract lock table: what may be answered, row by row, and what an unanswered request leaves open."""

from __future__ import annotations

import pytest

from specs.model.lock_table import LockFault, LockTable
from specs.vocabulary import Lane

LANE = Lane("billing", "orders", "b0", 0)
LIMIT = 60_000_000
FREE, OWN, OTHERS = None, "alice", "bob"


def table(holder: str | None, granted_us: int = 0) -> LockTable:
    made = LockTable(LIMIT)
    if holder is not None:
        made.lock(LANE, holder, granted_us, granted_us, True)
    return made


@pytest.mark.parametrize(
    ("holder", "now_us", "granted", "fault"),
    [
        (FREE, 0, True, None),
        (FREE, 0, False, LockFault.REFUSED_THOUGH_FREE),
        (OWN, LIMIT, True, None),
        (OWN, LIMIT, False, LockFault.REFUSED_THOUGH_FREE),
        (OWN, LIMIT + 1, True, None),
        (OWN, LIMIT + 1, False, LockFault.REFUSED_THOUGH_FREE),
        (OTHERS, LIMIT, False, None),
        (OTHERS, LIMIT, True, LockFault.GRANTED_THOUGH_HELD),
        (OTHERS, LIMIT + 1, True, None),
        (OTHERS, LIMIT + 1, False, LockFault.REFUSED_THOUGH_FREE),
    ],
)
def test_a_row_of_the_lock_table(
    holder: str | None, now_us: int, granted: bool, fault: LockFault | None
) -> None:
    """Expired means strictly older than the limit, and each answer is judged by the holder's state."""
    assert table(holder).lock(LANE, "alice", now_us, now_us, granted) == fault


def test_only_the_owner_unlocks() -> None:
    """A stranger's unlock frees nothing, the owner's does at any age."""
    made = table("bob")
    made.unlock(LANE, "alice", answered=True)
    assert made.must_refuse(LANE, "alice", LIMIT)
    made.unlock(LANE, "bob", answered=True)
    assert made.must_grant(LANE, "alice", 0)


def test_an_unanswered_lock_leaves_both_answers_open() -> None:
    """Nobody can say whether it happened, so neither a grant nor a refusal of another breaks a rule."""
    for granted in (True, False):
        made = table(FREE)
        made.lock(LANE, "bob", 0, 10, None)
        assert made.lock(LANE, "alice", 20, 30, granted) is None


def test_an_unanswered_unlock_leaves_both_answers_open() -> None:
    for granted in (True, False):
        made = table("bob")
        made.unlock(LANE, "bob", answered=False)
        assert made.lock(LANE, "alice", 20, 30, granted) is None


def test_an_answer_removes_the_states_that_it_contradicts() -> None:
    """After a refusal the unanswered request is known to have happened."""
    made = table(FREE)
    made.lock(LANE, "bob", 0, 10, None)
    made.lock(LANE, "alice", 20, 30, False)
    assert made.must_refuse(LANE, "carol", 40)


def test_a_request_across_the_end_of_a_lease_may_be_answered_either_way() -> None:
    """The broker looks at its clock somewhere between the request's begin and its end."""
    for granted in (True, False):
        assert table("bob").lock(LANE, "alice", LIMIT - 5, LIMIT + 5, granted) is None


def test_a_renewal_makes_the_lease_young_again() -> None:
    made = table("bob")
    made.lock(LANE, "bob", 40_000_000, 40_000_000, True)
    assert made.must_refuse(LANE, "alice", LIMIT + 1)


def test_certainly_locked_is_about_the_group_only() -> None:
    made = table("bob")
    assert made.certainly_locked("billing", LIMIT)
    assert not made.certainly_locked("audit", 0)
    assert made.certainly_unlocked("audit", 0)
    assert not made.certainly_unlocked("billing", LIMIT)


@pytest.mark.parametrize("granted", [True, False])
@pytest.mark.parametrize("now_us", [1, LIMIT + 1])
def test_where_the_limit_is_a_guess_time_decides_nothing(now_us: int, granted: bool) -> None:
    """Another's lease may live or be over at any age; its owner and who frees it are known all the same."""
    made = LockTable(LIMIT, known=False)
    made.lock(LANE, "bob", 0, 0, True)
    assert made.lock(LANE, "alice", now_us, now_us, granted) is None
    own = LockTable(LIMIT, known=False)
    own.lock(LANE, "bob", 0, 0, True)
    assert own.lock(LANE, "bob", now_us, now_us, False) == LockFault.REFUSED_THOUGH_FREE
    own.unlock(LANE, "bob", answered=True)
    assert own.must_grant(LANE, "alice", now_us)
