"""The load bench measures what it says: on our broker, little of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from conformance.load.__main__ import ratios, table, tell
from conformance.load.measure import Amount, Cell, Latency, all_shared, measure, soak
from conformance.load.systems import Ours
from reference_impl.client import Queue

QUICK = Latency(1, 2, 3)


def test_latencies_are_of_the_nearest_rank() -> None:
    assert Latency.of([number / 1000 for number in range(1, 1001)]) == Latency(500, 990, 999)
    assert Latency.of([0.007]) == Latency(7, 7, 7)


def test_a_cell_on_our_broker(tmp_path: Path) -> None:
    with Ours(tmp_path) as system:
        cell = asyncio.run(measure(system, 2, 2, Amount(send_s=0.2, backlog=200, singles=5)))
    assert (cell.system, cell.queues, cell.clients) == ("ours", 2, 2)
    assert min(cell.sends_per_s, cell.deliveries_per_s, cell.memory_mib) > 0
    assert 0 < cell.send.p50 <= cell.send.p99 <= cell.send.p999
    assert 0 < cell.delivery.p50 <= cell.delivery.p999


def test_nothing_is_lost_at_half_of_the_peak(tmp_path: Path) -> None:
    with Ours(tmp_path) as system:
        ran = asyncio.run(soak(system, 0.5, peak_per_s=400))
    assert ran.sent > 0
    assert ran.lost == 0
    assert "0 lost" in tell(ran)[0]


def test_ratios_are_ours_by_theirs() -> None:
    ours = Cell("ours", 4, 1, 100, QUICK, 900, QUICK, 30)
    theirs = Cell("5.4.0", 4, 1, 200, QUICK, 1_000, QUICK, 300)
    lonely = Cell("5.4.0", 8, 1, 200, QUICK, 1_000, QUICK, 300)
    assert ratios([ours, theirs, lonely]) == [
        "4 queues, 1 clients, ours / 5.4.0: sends 0.50, ordered deliveries 0.90 (aim 0.5), memory 0.10"
    ]
    assert table([ours, theirs]).row_count == 2


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([[0, 1], [2, 3]], True),
        ([[0, 1], [2]], False),
        ([[0, 1], [1, 2]], False),
        ([[0, 1, 2, 3], []], False),
    ],
)
def test_the_gate_opens_when_every_queue_has_one_member(shares: list[list[int]], expected: bool) -> None:
    class Member:
        def __init__(self, numbers: list[int]) -> None:
            self.queues = tuple(Queue("t", "b0", number) for number in numbers)

    assert all_shared([Member(numbers) for numbers in shares], 4) is expected  # type: ignore[misc]
