"""The lock table: every situation, both sides of the limit, every part of the key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.core.broker.lock_table import ON_LOCK, ON_UNLOCK, LockTable, Situation
from specs.vocabulary import Queue

LIMIT_MS = 60_000
Q0, Q1, Q2, Q3 = (Queue("orders", "b0", queue_id) for queue_id in range(4))


def held_by_alice_for(age_ms: int) -> tuple[LockTable, int]:
    """A table in which alice took Q0 that long ago, and the time now."""
    table = LockTable(LIMIT_MS)
    assert table.lock(1_000, "g", "alice", Q0)
    return table, 1_000 + age_ms


@pytest.mark.parametrize("situation", Situation)
def test_both_tables_decide_every_situation(situation: Situation) -> None:
    """There is no situation without a rule."""
    assert situation in ON_LOCK
    assert situation in ON_UNLOCK


@pytest.mark.parametrize(
    ("asker", "age_ms", "granted", "renewed"),
    [
        ("alice", 0, True, True),
        ("alice", LIMIT_MS, True, True),
        ("alice", LIMIT_MS + 1, True, True),
        ("bob", 0, False, False),
        ("bob", LIMIT_MS - 1, False, False),
        ("bob", LIMIT_MS, False, False),  # exactly the limit still lives
        ("bob", LIMIT_MS + 1, True, True),
        ("bob", 10 * LIMIT_MS, True, True),
    ],
)
def test_lock_of_a_held_lane(asker: str, age_ms: int, granted: bool, renewed: bool) -> None:
    """The owner is always granted, a stranger only when the lease is strictly older than the limit."""
    table, now_ms = held_by_alice_for(age_ms)
    assert table.lock(now_ms, "g", asker, Q0) is granted
    lease = table.leases_of("g")[Q0]
    assert lease.client_id == (asker if granted else "alice")
    assert lease.since_ms == (now_ms if renewed else 1_000)


def test_a_free_lane_is_granted() -> None:
    assert LockTable(LIMIT_MS).lock(0, "g", "alice", Q0)


@pytest.mark.parametrize(
    ("asker", "age_ms", "frees"),
    [
        ("alice", 0, True),
        ("alice", LIMIT_MS + 1, True),  # the owner's unlock frees at any age
        ("bob", 0, False),
        ("bob", LIMIT_MS + 1, False),  # a stranger's does not even when the lease has run out
    ],
)
def test_unlock_of_a_held_lane(asker: str, age_ms: int, frees: bool) -> None:
    """Only the owner's unlock frees."""
    table, now_ms = held_by_alice_for(age_ms)
    assert table.unlock_batch(now_ms, "g", asker, [Q0]) == ([Q0] if frees else [])
    assert (Q0 not in table.leases_of("g")) is frees


def test_unlock_of_a_free_lane_does_nothing() -> None:
    assert LockTable(LIMIT_MS).unlock_batch(0, "g", "alice", [Q0]) == []


def test_a_refusal_does_not_prolong_the_owners_lease() -> None:
    """Asking every second changes nothing: the lane is free one ms after the limit."""
    table = LockTable(LIMIT_MS)
    table.lock(0, "g", "alice", Q0)
    assert not any(table.lock(now_ms, "g", "bob", Q0) for now_ms in range(0, LIMIT_MS + 1, 1_000))
    assert table.lock(LIMIT_MS + 1, "g", "bob", Q0)


def test_a_take_over_counts_from_now() -> None:
    """The third client waits for the whole limit after the second one's grant."""
    table, now_ms = held_by_alice_for(LIMIT_MS + 1)
    assert table.lock(now_ms, "g", "bob", Q0)
    assert not table.lock(now_ms + LIMIT_MS, "g", "carol", Q0)
    assert table.lock(now_ms + LIMIT_MS + 1, "g", "carol", Q0)


def test_a_batch_is_granted_in_part() -> None:
    """The answer is the subset that is free, in the order asked."""
    table = LockTable(LIMIT_MS)
    assert table.lock_batch(0, "g", "alice", [Q0, Q1]) == [Q0, Q1]
    assert table.lock_batch(1, "g", "bob", [Q3, Q0, Q1, Q2]) == [Q3, Q2]
    assert table.lock_batch(2, "g", "carol", [Q0, Q3]) == []


@pytest.mark.parametrize(
    ("group", "queue"),
    [
        ("other", Q0),
        ("g", Queue("payments", "b0", 0)),
        ("g", Queue("orders", "b1", 0)),
        ("g", Q1),
    ],
)
def test_every_part_of_the_key_tells_lanes_apart(group: str, queue: Queue) -> None:
    """Another group, topic, broker name or queue never conflicts."""
    table, now_ms = held_by_alice_for(0)
    assert table.lock(now_ms, group, "bob", queue)


@pytest.mark.parametrize(
    ("age_ms", "expired"), [(0, False), (LIMIT_MS, False), (LIMIT_MS + 1, True)]
)
def test_all_expired(age_ms: int, expired: bool) -> None:
    """A group is without a live lease when it has none, or all have run out."""
    table, now_ms = held_by_alice_for(age_ms)
    assert table.all_expired(now_ms, "g") is expired
    assert table.all_expired(now_ms, "nobody")


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["lock", "unlock"]),
            st.sampled_from(["alice", "bob", "carol"]),
            st.integers(0, 15),  # ms since the step before; the limit is 10
        ),
        max_size=40,
    )
)
def test_nobody_is_granted_a_living_lease_of_another(steps: list[tuple[str, str, int]]) -> None:
    """Whatever was asked before: a grant means that nobody else was granted within the limit and kept it."""
    table, now_ms = LockTable(10), 0
    owner: tuple[str, int] | None = None
    for verb, client, gap_ms in steps:
        now_ms += gap_ms
        if verb == "lock":
            taken = owner is not None and owner[0] != client and now_ms - owner[1] <= 10
            assert table.lock(now_ms, "g", client, Q0) is not taken
            owner = owner if taken else (client, now_ms)
        else:
            table.unlock_batch(now_ms, "g", client, [Q0])
            owner = None if owner and owner[0] == client else owner
