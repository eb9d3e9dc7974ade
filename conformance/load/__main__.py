"""`python -m conformance.load`: the tables."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click
from rich import box
from rich.table import Table

from conformance.cli.people import console
from conformance.load.measure import Amount, Cell, Latency, Soak, measure, measure_sends, soak
from conformance.load.systems import Apaches, Loaded, Ours
from conformance.parts import jars
from conformance.parts.java import find_java

VERSION = "5.4.0"
AIM = 0.5
QUEUES = (1, 4, 64)
CLIENTS = (1, 50)
WARM = Amount(send_s=2.0, backlog=5_000, singles=100)


@click.command()
@click.option("--soak", "soak_s", type=click.FloatRange(1), help="Instead of the table: so many seconds at half peak.")
@click.option("--send-s", default=3.0, show_default=True, type=click.FloatRange(0.1))
@click.option("--backlog", default=20_000, show_default=True, type=click.IntRange(100))
@click.option("--queues", "queue_counts", multiple=True, type=click.IntRange(1, 256), help="1, 4 and 64 unless said.")
@click.option("--clients", "client_counts", multiple=True, type=click.IntRange(1, 200), help="1 and 50 unless said.")
@click.option("--alone", is_flag=True, help="Our broker only, and no ratios.")
def main(
    soak_s: float | None,
    send_s: float,
    backlog: int,
    queue_counts: tuple[int, ...],
    client_counts: tuple[int, ...],
    alone: bool,
) -> None:
    """Sends and ordered deliveries per second, our broker beside Apache's under the same client."""
    beside = not alone and jars.present(VERSION) and find_java() is not None
    if not beside and not alone:
        click.echo(f"without the jars of RocketMQ {VERSION} and Java there is nothing to compare with", err=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inorder-load-")))
        if soak_s is not None:
            asyncio.run(_soak(stack.enter_context(Ours(folder / "ours")), soak_s))
            return
        amount = Amount(send_s, backlog)
        systems: list[Loaded] = [Ours(folder / "ours"), *([Apaches(VERSION, folder / "apache")] if beside else [])]
        cells = []
        for system in systems:  # one after the other: each has the machine to itself
            with system:
                asyncio.run(measure(system, 2, 2, WARM))  # a virtual machine translates what it runs often
                for queues in queue_counts or QUEUES:
                    for clients in client_counts or CLIENTS:
                        cells.append(asyncio.run(measure(system, queues, clients, amount)))
                        click.echo(f"{system.name}: {queues} queues, {clients} clients measured", err=True)
        console().print(table(cells))
        for line in ratios(cells):
            click.echo(line)


def table(cells: Sequence[Cell]) -> Table:
    shown = Table(title="Load, by one client process", box=box.SIMPLE)
    for column in ("queues", "clients", "broker", "sends/s", "ms", "deliveries/s", "ms late", "MiB"):
        shown.add_column(column, justify="left" if column == "broker" else "right", no_wrap=True)
    for cell in sorted(cells, key=lambda cell: (cell.queues, cell.clients)):
        shown.add_row(
            str(cell.queues),
            str(cell.clients),
            cell.system,
            f"{cell.sends_per_s:,.0f}",
            _latency(cell.send),
            f"{cell.deliveries_per_s:,.0f}",
            _latency(cell.delivery),
            f"{cell.memory_mib:,.0f}",
        )
    shown.caption = "ms: of a send, and from the send to the listener; p50 / p99 / p99.9"
    return shown


def _latency(latency: Latency) -> str:
    return f"{latency.p50:.1f} / {latency.p99:.1f} / {latency.p999:.1f}"


def ratios(cells: Sequence[Cell]) -> list[str]:
    """Ours divided by the other broker's, cell by cell; nothing where there is only one broker."""
    ours = {(cell.queues, cell.clients): cell for cell in cells if cell.system == Ours.name}
    lines = []
    for other in cells:
        mine = ours.get((other.queues, other.clients))
        if other.system == Ours.name or mine is None:
            continue
        lines.append(
            f"{other.queues} queues, {other.clients} clients, ours / {other.system}: "
            f"sends {mine.sends_per_s / other.sends_per_s:.2f}, "
            f"ordered deliveries {mine.deliveries_per_s / other.deliveries_per_s:.2f} (aim {AIM}), "
            f"memory {mine.memory_mib / other.memory_mib:.2f}"
        )
    return lines


async def _soak(system: Loaded, seconds: float) -> None:
    await asyncio.to_thread(system.create_topic, "peak", 4)
    peak, _ = await measure_sends(system, "peak", 8, min(3.0, seconds))
    for line in tell(await soak(system, seconds, peak)):
        click.echo(line)


def tell(ran: Soak) -> list[str]:
    return [
        f"{ran.seconds:.0f} s at {ran.rate:,.0f} messages/s, half of the peak: {ran.sent:,} sent, {ran.lost} lost",
        f"broker's memory: {ran.early_mib:.0f} MiB early, {ran.late_mib:.0f} MiB late",
    ]


if __name__ == "__main__":
    sys.exit(main())
