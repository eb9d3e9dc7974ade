"""`python -m inorder.evidence.load`: the tables."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.table import Table

from conformance.cli.people import console, tell
from conformance.parts import jars
from conformance.parts.java import find_java
from conformance.reports import plots
from inorder.evidence import grid
from inorder.evidence.load.measure import (
    Amount,
    Cell,
    Cost,
    Latency,
    Soak,
    measure,
    measure_sends,
    soak,
)
from inorder.evidence.load.systems import Apaches, Loaded, Ours
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from inorder.evidence.tables import draw, terminal
from specs.scratch import Scratch

VERSION = "5.4.0"
CODE = (
    "specs",
    "reference_impl",
    "conformance/parts",
    "conformance/targets",
    "inorder/evidence/load",
)
"""What a measurement depends on, beside the machine."""
AIM = 0.5
QUEUES = (1, 4, 64)
CLIENTS = (1, 50)
ROUNDS = 3
QUEUE_BACKLOG = 1_000
"""At least so many messages for each queue: up to 132 of them are at the client before the gate opens."""
WARM = Amount(send_s=12.0, backlog=5_000, singles=100)
"""Apache's broker has a thread that keeps a core busy for its first ten seconds, and translates what runs often."""


@click.command()
@click.option(
    "--soak",
    "soak_s",
    type=click.FloatRange(1),
    help="Instead of the table: so many seconds at half peak.",
)
@click.option("--send-s", default=3.0, show_default=True, type=click.FloatRange(0.1))
@click.option(
    "--backlog",
    default=20_000,
    show_default=True,
    type=click.IntRange(100),
    help="1,000 a queue at least.",
)
@click.option(
    "--queues",
    "queue_counts",
    multiple=True,
    type=click.IntRange(1, 256),
    help="1, 4 and 64 unless said.",
)
@click.option(
    "--clients",
    "client_counts",
    multiple=True,
    type=click.IntRange(1, 200),
    help="1 and 50 unless said.",
)
@click.option(
    "--rounds",
    default=ROUNDS,
    show_default=True,
    type=click.IntRange(1),
    help="Each cell so many times.",
)
@click.option("--alone", is_flag=True, help="Our broker only, and no ratios.")
@grid_options(out="Where finished measurements are kept; nowhere if not given.", seed=None)
@in_a_sentence
def main(
    soak_s: float | None,
    send_s: float,
    backlog: int,
    queue_counts: tuple[int, ...],
    client_counts: tuple[int, ...],
    rounds: int,
    alone: bool,
    how: GridOptions,
) -> None:
    """Sends and ordered deliveries per second, our broker beside Apache's under the same client.

    Both are up all the time, warm, and measured in turns, so that what else the machine does meets both alike.
    """
    beside = not alone and jars.present(VERSION) and find_java() is not None
    if not beside and not alone:
        tell(f"without the jars of RocketMQ {VERSION} and Java there is nothing to compare with")
    if soak_s is not None:
        with (
            Scratch("load") as folder,
            Ours(Path(folder)) as ours,
        ):
            asyncio.run(_soak(ours, soak_s))
        return
    brokers = (Ours.name, VERSION) if beside else (Ours.name,)
    turns = [
        turn_of(
            queues, clients, Amount(send_s, max(backlog, QUEUE_BACKLOG * queues)), turn, brokers
        )
        for queues in queue_counts or QUEUES
        for clients in client_counts or CLIENTS
        for turn in range(rounds)
    ]
    made: list[grid.Done] = []
    with Warm(brokers) as warm:
        for done in how.make(turns, warm.measure, how.out):
            if done.error is not None:
                raise done.error
            made.append(done)
            if not done.resumed:
                tell(f"{done.cell.name} measured")
    if made:
        cells = [from_json(each) for done in made for each in done.value]
        show(cells)
        if how.out is not None:
            keep(cells, how.out)
    raise SystemExit(close(made, len(turns)))


class Warm(AbstractContextManager["Warm"]):
    """The brokers, started and warmed by the first cell that is to be measured, and up until all are."""

    def __init__(self, brokers: Sequence[str]) -> None:
        self._brokers = brokers
        self._systems: list[Loaded] = []
        self._stack = ExitStack()

    def __exit__(self, *how: object) -> None:
        self._stack.close()

    def measure(self, turn: grid.Cell) -> list[dict[str, Any]]:
        """Make a cell: each broker once, in another order every other time."""
        if not self._systems:
            self._begin()
        amount = Amount(**turn.key["amount"])
        numbers = (turn.key["queues"], turn.key["clients"])
        systems = self._systems if turn.key["turn"] % 2 == 0 else self._systems[::-1]
        return [
            asdict(asyncio.run(measure(system, *numbers, amount, turn.key["turn"])))
            for system in systems
        ]

    def _begin(self) -> None:
        folder = Path(self._stack.enter_context(Scratch("load")))
        for name in self._brokers:
            made: Loaded = (
                Ours(folder / name) if name == Ours.name else Apaches(name, folder / name)
            )
            self._systems.append(self._stack.enter_context(made))
        for system in self._systems:
            asyncio.run(measure(system, 2, 2, WARM))


def turn_of(
    queues: int, clients: int, amount: Amount, turn: int, brokers: Sequence[str]
) -> grid.Cell:
    """One turn of a cell of the table, on all brokers, and all that its figures depend on."""
    key = {
        "queues": queues,
        "clients": clients,
        "amount": asdict(amount),
        "turn": turn,
        "brokers": list(brokers),
        "machine": f"{platform.node()}, {os.cpu_count()} cores",
        **grid.code_key(*CODE),
    }
    return grid.Cell("load", f"{queues} queues, {clients} clients, round {turn + 1}", key)


def from_json(data: Mapping[str, Any]) -> Cell:
    """One measurement, as a cell keeps it."""
    latencies = {name: Latency(**data[name]) for name in ("send", "delivery")}
    costs = {name: Cost(**data[name]) for name in ("send_cost", "delivery_cost")}
    return Cell(**{**data, **latencies, **costs})


def show(cells: Sequence[Cell]) -> None:
    """The tables on stdout, what is ours by theirs, and what else the machine did meanwhile."""
    console().print(*tables(cells), sep="\n")
    for line in ratios(cells):
        click.echo(line)
    others = sorted(
        100 * cost.others for cell in cells for cost in (cell.send_cost, cell.delivery_cost)
    )
    click.echo(
        f"other work took {median(others):.0f} % of the machine ({others[0]:.0f} to {others[-1]:.0f})"
    )


def keep(cells: Sequence[Cell], folder: Path) -> None:
    """The measurements as JSON, and pictures of both speeds, broker beside broker."""
    data = json.dumps([asdict(cell) for cell in cells], indent=2)
    (folder / "load.json").write_text(data + "\n", encoding="utf-8")
    for name, title in (("sends_per_s", "Sends"), ("deliveries_per_s", "Ordered deliveries")):
        rows = [
            plots.Bar(
                f"{queues} queues, {clients} clients, {system}",
                speed,
                f"{speed:,.0f} ({min(all_of):,.0f} to {max(all_of):,.0f})",
                second=system != Ours.name,
            )
            for (queues, clients, system), rounds in sorted(_rounds(cells).items())
            for all_of in [[getattr(cell, name) for cell in rounds]]
            for speed in [median(all_of)]
        ]
        unit = "messages a second: the median of the rounds, from the slowest to the quickest"
        drawn = plots.bars(name.replace("_", "-"), f"{title} per second", rows, unit=unit)
        draw(folder / f"{name.partition('_')[0]}.svg", drawn)


def tables(cells: Sequence[Cell]) -> list[Table]:
    """Of sends and of deliveries: one row for each broker and cell, the medians of its rounds."""
    sends: list[tuple[str, ...]] = []
    deliveries: list[tuple[str, ...]] = []
    for (queues, clients, system), rounds in sorted(_rounds(cells).items()):
        head = (str(queues), str(clients), system)
        sends.append(
            (
                *head,
                f"{median(cell.sends_per_s for cell in rounds):,.0f}",
                _latency([cell.send for cell in rounds]),
                *_costs([cell.send_cost for cell in rounds]),
            )
        )
        deliveries.append(
            (
                *head,
                f"{median(cell.deliveries_per_s for cell in rounds):,.0f}",
                _latency([cell.delivery for cell in rounds]),
                *_costs([cell.delivery_cost for cell in rounds]),
                f"{median(cell.memory_mib for cell in rounds):,.0f}",
            )
        )
    return [
        _table(
            "Sends",
            ("/s", "ms p50 / p99 / p99.9", "broker us", "clients"),
            sends,
            "broker us: its CPU time for each message. clients: how much of a core they take.",
        ),
        _table(
            "Ordered deliveries",
            ("/s", "ms late p50 / p99 / p99.9", "broker us", "clients", "MiB"),
            deliveries,
            "ms late: from the send to the listener, one by one. MiB: what the broker holds.",
        ),
    ]


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str
) -> Table:
    head = ("queues", "clients", "broker", *columns)
    right = {"queues", *columns}
    shown = terminal(head, rows, right=right)
    shown.title, shown.caption = f"{title}, by one client process; medians", caption
    return shown


def _rounds(cells: Sequence[Cell]) -> dict[tuple[int, int, str], list[Cell]]:
    found: dict[tuple[int, int, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.queues, cell.clients, cell.system), []).append(cell)
    return found


def _latency(found: Sequence[Latency]) -> str:
    return " / ".join(
        f"{median(getattr(one, share) for one in found):.1f}" for share in ("p50", "p99", "p999")
    )


def _costs(found: Sequence[Cost]) -> tuple[str, str]:
    return (
        f"{median(one.broker_us for one in found):.0f}",
        f"{100 * median(one.client for one in found):.0f} %",
    )


def ratios(cells: Sequence[Cell]) -> list[str]:
    """Ours divided by the other broker's, round by round: the median, and from where to where they go."""
    rounds = _rounds(cells)
    lines = []
    for (queues, clients, system), theirs in rounds.items():
        ours = rounds.get((queues, clients, Ours.name), [])
        if system == Ours.name or not ours:
            continue
        pairs = list(zip(ours, theirs, strict=True))
        lines.append(
            f"{queues} queues, {clients} clients, ours / {system} (aim {AIM}): "
            f"sends {_spread([mine.sends_per_s / other.sends_per_s for mine, other in pairs])}, "
            "ordered deliveries "
            f"{_spread([mine.deliveries_per_s / other.deliveries_per_s for mine, other in pairs])}, "
            f"memory {median(mine.memory_mib / other.memory_mib for mine, other in pairs):.2f}"
        )
    return lines


def _spread(values: Sequence[float]) -> str:
    missed = ", missed" if median(values) < AIM else ""
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f}{missed})"


async def _soak(system: Loaded, seconds: float) -> None:
    await asyncio.to_thread(system.create_topic, "peak", 4)
    peak, _, _ = await measure_sends(system, "peak", 8, min(3.0, seconds))
    for line in soaked(await soak(system, seconds, peak)):
        click.echo(line)


def soaked(ran: Soak) -> list[str]:
    return [
        f"{ran.seconds:.0f} s at {ran.rate:,.0f} messages/s, half of the peak: {ran.sent:,} sent, {ran.lost} lost",
        f"broker's memory, by fifths of the time: {', '.join(f'{mib:.1f}' for mib in ran.memory_mib)} MiB; "
        f"from the second to the last it grew by {ran.grew_mib:.1f} MiB",
    ]


if __name__ == "__main__":
    sys.exit(main())
