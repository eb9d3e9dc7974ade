"""The load bench measures what it says: on our broker, little of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from inorder.evidence import grid
from inorder.evidence.load.__main__ import from_json, main, ratios, soaked, tables
from inorder.evidence.load.measure import (
    Amount,
    Cell,
    Cost,
    Latency,
    Meter,
    Soak,
    all_shared,
    measure,
    soak,
)
from inorder.evidence.load.systems import Ours
from reference_impl.client import Queue

QUICK = Latency(1, 2, 3)
CHEAP = Cost(10, 0.5, 0)


def cell(
    system: str,
    sends_per_s: float,
    deliveries_per_s: float,
    *,
    queues: int = 4,
    memory_mib: float = 30,
) -> Cell:
    return Cell(
        system, queues, 1, sends_per_s, QUICK, CHEAP, deliveries_per_s, QUICK, CHEAP, memory_mib
    )


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
    assert (
        min(
            cell.send_cost.broker_us,
            cell.send_cost.client,
            cell.delivery_cost.client,
            cell.send_cost.others,
        )
        >= 0
    )


def test_a_meter_tells_the_broker_from_the_client(tmp_path: Path) -> None:
    """Work of this process is the client's, and not the broker's, which has nothing to do."""
    me = psutil.Process()
    with Ours(tmp_path) as system:
        meter, began = Meter(system), me.cpu_times().user
        while me.cpu_times().user < began + 0.5:
            sum(range(10_000))
        cost = meter.cost(1)
    assert cost.client > 0
    assert cost.broker_us < 500_000


def test_nothing_is_lost_at_half_of_the_peak(tmp_path: Path) -> None:
    with Ours(tmp_path) as system:
        ran = asyncio.run(soak(system, 0.5, peak_per_s=400))
    assert ran.sent > 0
    assert ran.lost == 0
    assert "0 lost" in soaked(ran)[0]


def test_ratios_are_ours_by_theirs() -> None:
    """Round by round: what disturbed one round is in both."""
    ours = [cell("ours", sends, 900) for sends in (100, 10, 90)]
    pairs = ((250, 1_000), (20, 3_000), (200, 900))
    theirs = [cell("5.4.0", sends, deliveries, memory_mib=300) for sends, deliveries in pairs]
    lonely = cell("5.4.0", 200, 1_000, queues=8)
    assert ratios([*ours, *theirs, lonely]) == [
        "4 queues, 1 clients, ours / 5.4.0 (aim 0.5): sends 0.45 (0.40 to 0.50, missed), "
        "ordered deliveries 0.90 (0.30 to 1.00), memory 0.10"
    ]
    assert [shown.row_count for shown in tables([*ours, *theirs])] == [2, 2]


def test_growth_is_from_the_second_fifth_to_the_last() -> None:
    assert Soak(300, 100, 30_000, 0, (20, 25, 25, 26, 27)).grew_mib == 2
    assert Soak(1, 100, 100, 0, (20,)).grew_mib == 0


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([[0, 1], [2, 3]], True),
        ([[0, 1], [2]], False),
        ([[0, 1], [1, 2]], False),
        ([[0, 1, 2, 3], []], False),
    ],
)
def test_the_gate_opens_when_every_queue_has_one_member(
    shares: list[list[int]], expected: bool
) -> None:
    class Member:
        def __init__(self, numbers: list[int]) -> None:
            self.queues = tuple(Queue("t", "b0", number) for number in numbers)

    assert all_shared([Member(numbers) for numbers in shares], 4) is expected  # type: ignore[misc]


def test_what_is_measured_is_kept_and_told_again_with_its_age(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A second command starts no broker; what a budget left is made by the next one."""
    asked: list[int] = []

    def measured(_: object, turn: grid.Cell) -> list[dict[str, Any]]:
        asked.append(turn.key["turn"])
        found = cell("ours", 100 + turn.key["turn"], 900, queues=turn.key["queues"])
        return [asdict(found)]

    monkeypatch.setattr("inorder.evidence.load.__main__.Warm.measure", measured)
    words = ["--alone", "--queues", "4", "--clients", "1", "--rounds", "3", "--out", str(tmp_path)]
    assert CliRunner().invoke(main, [*words, "--budget", "0s"]).exit_code == 2
    first = CliRunner().invoke(main, words)
    again = CliRunner().invoke(main, words)
    assert (first.exit_code, again.exit_code, asked) == (0, 0, [0, 1, 2])
    assert first.stdout == again.stdout
    assert "Ordered deliveries" in first.stdout
    assert "3 cells are" in again.stderr
    kept = json.loads((tmp_path / "load.json").read_text(encoding="utf-8"))
    assert [each["sends_per_s"] for each in kept] == [100, 101, 102]
    told = "4 queues, 1 clients, ours: 101 (100 to 102)"
    assert told in (tmp_path / "sends.svg").read_text(encoding="utf-8")
    assert "900 (900 to 900)" in (tmp_path / "deliveries.svg").read_text(encoding="utf-8")


def test_a_measurement_comes_back_as_it_was() -> None:
    one = cell("ours", 100, 900)
    assert from_json(json.loads(json.dumps(asdict(one)))) == one
