"""The six strategies as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.core.allocation import (
    STRATEGIES,
    averagely,
    by_circle,
    by_config,
    by_machine_room,
    consistent_hash,
    nearby,
    strategy,
)
from specs.errors import UsageError
from specs.vocabulary import Queue


def queues(count: int, broker: str = "b0") -> list[Queue]:
    return [Queue("t", broker, number) for number in range(count)]


def numbers(found: list[Queue]) -> list[int]:
    return [queue.queue_id for queue in found]


AVG = [
    # queues, members, the share of each
    (4, 1, [[0, 1, 2, 3]]),
    (4, 2, [[0, 1], [2, 3]]),
    (8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
    (5, 3, [[0, 1], [2, 3], [4]]),
    (3, 3, [[0], [1], [2]]),
    (2, 4, [[0], [1], [], []]),
    (0, 2, [[], []]),
]


@pytest.mark.parametrize(("count", "size", "shares"), AVG)
def test_averagely(count: int, size: int, shares: list[list[int]]) -> None:
    members = [f"c{number}" for number in range(size)]
    assert [numbers(averagely(member, queues(count), members)) for member in members] == shares


CIRCLE = [
    (4, 2, [[0, 2], [1, 3]]),
    (5, 3, [[0, 3], [1, 4], [2]]),
    (2, 3, [[0], [1], []]),
]


@pytest.mark.parametrize(("count", "size", "shares"), CIRCLE)
def test_by_circle(count: int, size: int, shares: list[list[int]]) -> None:
    members = [f"c{number}" for number in range(size)]
    assert [numbers(by_circle(member, queues(count), members)) for member in members] == shares


def test_by_config_asks_nobody() -> None:
    assert numbers(by_config(queues(2))("stranger", queues(9), ["c0"])) == [0, 1]


def test_by_machine_room() -> None:
    """Only the listed rooms; the remainder goes one each to the first members; other names are left out."""
    all_queues = [
        *queues(5, "r1@b0"),
        *queues(2, "r2@b1"),
        *queues(2, "plain"),
        *queues(1, "a@b@c"),
    ]
    allocate = by_machine_room({"r1", "plain", "a"})
    members = ["c0", "c1", "c2"]
    assert [numbers(allocate(member, all_queues, members)) for member in members] == [
        [0, 3],
        [1, 4],
        [2],
    ]
    assert allocate("stranger", all_queues, members) == []


def test_nearby() -> None:
    """r1 is shared by those who live there, r2 by nobody else, and r3, where nobody lives, by all."""
    all_queues = [*queues(4, "r1-b"), *queues(2, "r2-b"), *queues(3, "r3-b")]
    allocate = nearby(averagely, lambda queue: queue.broker[:2], lambda member: member[:2])
    members = ["r1-c0", "r1-c1", "r2-c0"]
    shares = {
        member: [(q.broker[:2], q.queue_id) for q in allocate(member, all_queues, members)]
        for member in members
    }
    assert shares == {
        "r1-c0": [("r1", 0), ("r1", 1), ("r3", 0)],
        "r1-c1": [("r1", 2), ("r1", 3), ("r3", 1)],
        "r2-c0": [("r2", 0), ("r2", 1), ("r3", 2)],
    }
    assert allocate("r9-c0", all_queues, members) == []


def test_consistent_hash_is_stable_when_a_member_leaves() -> None:
    """Queues of those who stay stay with them."""
    members = ["c0", "c1", "c2"]
    before = {member: consistent_hash(member, queues(32), members) for member in members}
    after = {member: consistent_hash(member, queues(32), ["c0", "c2"]) for member in ("c0", "c2")}
    assert all(set(before[member]) <= set(after[member]) for member in after)


def test_consistent_hash_vector() -> None:
    """The ring of MD5's first four bytes over `member-number`, the queue as Java prints it."""
    shares = [numbers(consistent_hash(member, queues(8), ["c0", "c1"])) for member in ("c0", "c1")]
    assert shares == [[0, 1, 5], [2, 3, 4, 6, 7]]


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@given(
    count=st.integers(0, 20),
    members=st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=7, unique=True),
)
def test_a_share_is_a_partition(name: str, count: int, members: list[str]) -> None:
    """Each queue has exactly one owner, and a stranger none."""
    members = sorted(members)
    allocate = strategy(name)
    given_out = sorted(
        queue for member in members for queue in allocate(member, queues(count), members)
    )
    assert given_out == queues(count)
    assert allocate("stranger", queues(count), members) == []


def test_an_unknown_strategy_is_said() -> None:
    with pytest.raises(UsageError, match="known are AVG, CIRCLE, CONSISTENT_HASH"):
        strategy("avg")
