"""Which brokers a producer avoids, and for how long; and the selectors."""

from __future__ import annotations

from random import Random

import pytest

from reference_impl.core.fault_avoidance import Faults, avoided_ms
from reference_impl.core.selectors import by_hash, by_random, to_queue
from reference_impl.protocol.bodies import java_hash
from specs.errors import UsageError
from specs.vocabulary import Queue

QUEUES = [Queue("t", broker, number) for broker in ("b0", "b1") for number in range(3)]


@pytest.mark.parametrize(
    ("latency_ms", "expected_ms"),
    [
        (0, 0),
        (549, 0),
        (550, 2_000),
        (1_799, 2_000),
        (1_800, 5_000),
        (3_000, 6_000),
        (5_000, 10_000),
        (14_999, 10_000),
        (15_000, 30_000),
        (10**9, 30_000),
    ],
)
def test_the_slower_the_longer(latency_ms: int, expected_ms: int) -> None:
    assert avoided_ms(latency_ms) == expected_ms


def test_a_failure_counts_as_ten_seconds_and_a_quick_send_makes_good() -> None:
    faults = Faults()
    assert faults.is_available(0, "b")
    faults.saw(1_000, "b", None)
    assert [faults.is_available(now, "b") for now in (1_000, 10_999, 11_000)] == [
        False,
        False,
        True,
    ]
    assert faults.is_available(1_000, "other")
    faults.saw(2_000, "b", 10)
    assert faults.is_available(2_000, "b")


def test_every_hash_finds_a_queue() -> None:
    smallest = "polygenelubricants"  # its hash is -2^31
    assert java_hash(smallest) == -(2**31)
    assert by_hash(smallest, QUEUES) == QUEUES[2**31 % 6]
    assert by_hash(None, QUEUES) == QUEUES[0]
    assert {by_hash(f"key-{number}", QUEUES) for number in range(100)} == set(QUEUES)


def test_random_takes_them_all_by_the_choices_that_it_is_given() -> None:
    first, second = by_random(Random(1)), by_random(Random(1))
    chosen = [first("k", QUEUES) for _ in range(100)]
    assert chosen == [second("k", QUEUES) for _ in range(100)]
    assert set(chosen) == set(QUEUES)


def test_a_queue_may_be_named() -> None:
    assert to_queue(2)(None, QUEUES) == Queue("t", "b0", 2)
    assert to_queue(2, "b1")(None, QUEUES) == Queue("t", "b1", 2)
    with pytest.raises(UsageError, match=r"no queue 7.*known are b0/0"):
        to_queue(7)(None, QUEUES)
    with pytest.raises(UsageError, match="no queue 1 on broker b2"):
        to_queue(1, "b2")(None, QUEUES)
