"""`inorder serve`: the reference cluster as a server that unmodified RocketMQ clients can use."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import click

from reference_impl.core.broker import BrokerConfig
from reference_impl.core.broker.config import DELAY_LEVELS
from reference_impl.core.nameserver import NameServerConfig
from reference_impl.shell.cluster import LocalCluster
from reference_impl.shell.errors import split_address
from reference_impl.storage import DiskStore, FlushMode, StoreOptions
from reference_impl.storage.layout import SEGMENT_BYTES, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN
from specs.errors import UsageError

PARENT_LOOK_S = 0.5
WILDCARDS = frozenset({"0.0.0.0", "::"})


@click.command(name="serve")
@click.option(
    "--namesrv-port",
    default=9876,
    show_default=True,
    help="Port of the name server; 0: any free one.",
)
@click.option(
    "--name-servers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 16),
    help="On ports in a row.",
)
@click.option(
    "--broker-port", default=10911, show_default=True, help="Port of the broker; 0: any free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--advertise", metavar="HOST:PORT", help="The broker's address in routes, if not its own."
)
@click.option("--broker-name", default="b0", show_default=True)
@click.option(
    "--cluster",
    "cluster_name",
    default=BrokerConfig().cluster,
    show_default=True,
    help="Name of the broker's cluster.",
)
@click.option(
    "--topic", "topics", multiple=True, metavar="NAME", help="Create this topic; may be repeated."
)
@click.option(
    "--queues",
    default=4,
    show_default=True,
    type=click.IntRange(1, 1024),
    help="Queues of a topic.",
)
@click.option("--dialect", default="5.x", show_default=True, type=click.Choice(["5.x", "4.9"]))
@click.option("--broker-lease-ms", default=60_000, show_default=True, type=click.IntRange(1))
@click.option("--channel-expiry-ms", default=120_000, show_default=True, type=click.IntRange(1))
@click.option("--persist-ms", default=5_000, show_default=True, type=click.IntRange(1))
@click.option(
    "--delay-levels", default=DELAY_LEVELS, help="One duration for each level, as '1s 5s'."
)
@click.option(
    "--transaction-timeout-ms",
    default=6_000,
    show_default=True,
    type=click.IntRange(1),
    help="Then it is asked.",
)
@click.option(
    "--transaction-check-interval-ms", default=30_000, show_default=True, type=click.IntRange(1)
)
@click.option(
    "--transaction-check-max",
    default=15,
    show_default=True,
    type=click.IntRange(1),
    help="Then it is gone.",
)
@click.option(
    "--store",
    "store_dir",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep messages there.",
)
@click.option(
    "--flush",
    default="async",
    show_default=True,
    type=click.Choice(["sync", "async"]),
    help="Answer a send when?",
)
@click.option(
    "--flush-ms",
    default=500,
    show_default=True,
    type=click.IntRange(1),
    help="With async: how often.",
)
@click.option(
    "--keep-hours", default=72.0, show_default=True, type=click.FloatRange(0), help="0: for ever."
)
@click.option(
    "--delete-when",
    default="04",
    show_default=True,
    metavar="HH;HH",
    help="Hours (UTC); '': all of them.",
)
@click.option(
    "--clean-ms",
    default=10_000,
    show_default=True,
    type=click.IntRange(1),
    help="How often it is looked.",
)
@click.option(
    "--disk-limits",
    default="75 85 90",
    show_default=True,
    help="Per cent of the disk above which what is too old goes at any hour, the oldest goes, sends are refused.",
)
@click.option(
    "--segment-bytes",
    default=SEGMENT_BYTES,
    type=click.IntRange(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
)
@click.option(
    "--cut-damage",
    is_flag=True,
    help="Start on a damaged store; what lies behind the damage is lost.",
)
@click.option(
    "--order-topics",
    is_flag=True,
    help="Routes tell the fixed queue lists that `updateOrderConf` has set.",
)
@click.option(
    "--format", "form", default="text", show_default=True, type=click.Choice(["text", "json"])
)
@click.option(
    "--with-parent", is_flag=True, help="End when the process that started this one is gone."
)
def serve(
    namesrv_port: int,
    name_servers: int,
    broker_port: int,
    host: str,
    advertise: str | None,
    broker_name: str,
    cluster_name: str,
    topics: tuple[str, ...],
    queues: int,
    dialect: str,
    broker_lease_ms: int,
    channel_expiry_ms: int,
    persist_ms: int,
    delay_levels: str,
    transaction_timeout_ms: int,
    transaction_check_interval_ms: int,
    transaction_check_max: int,
    store_dir: Path | None,
    flush: str,
    flush_ms: int,
    keep_hours: float,
    delete_when: str,
    clean_ms: int,
    disk_limits: str,
    segment_bytes: int,
    cut_damage: bool,
    order_topics: bool,
    form: str,
    with_parent: bool,
) -> None:
    """Run a name server (or several) and a broker until SIGINT or SIGTERM.

    The addresses are printed when both are ready. Messages are kept in memory, or in the folder of --store:
    with --flush sync a send is answered when its message is safe from a crash of the machine, with async at
    once, and a crash of the machine loses at most what was sent since the last flush. A kill loses nothing.

    What is older than --keep-hours goes in the hours of --delete-when, and earlier where the disk fills up: see
    docs/storage.md.
    """
    if advertise is not None:
        split_address(advertise)
    elif host in WILDCARDS:
        raise UsageError(
            f"Clients can't connect to {host}; say with --advertise HOST:PORT where they find the broker."
        )
    limits = _limits(disk_limits)
    config = BrokerConfig(
        cluster=cluster_name,
        dialect=dialect,
        lease_ms=broker_lease_ms,
        channel_expiry_ms=channel_expiry_ms,
        channel_scan_ms=min(10_000, max(1, channel_expiry_ms // 4)),
        persist_first_ms=min(10_000, 2 * persist_ms),
        persist_ms=persist_ms,
        delay_levels=delay_levels,
        transaction_timeout_ms=transaction_timeout_ms,
        transaction_check_interval_ms=transaction_check_interval_ms,
        transaction_check_max=transaction_check_max,
        default_queues=queues,
        keep_ms=round(keep_hours * 3_600_000) or None,
        delete_hours=_hours(delete_when),
        clean_ms=clean_ms,
        disk_max=limits[0],
        disk_force=limits[1],
        disk_refuse=limits[2],
    )
    cluster = LocalCluster(
        config,
        names=(broker_name,),
        name_servers=name_servers,
        namesrv_port=namesrv_port,
        name_server_config=NameServerConfig(order_topics=order_topics),
        broker_port=broker_port,
        host=host,
        advertise=advertise,
        topics=topics,
        queues=queues,
        store_dir=store_dir,
        store_options=StoreOptions(
            FlushMode(flush), flush_ms, segment_bytes, cut_damage=cut_damage
        ),
    )
    asyncio.run(_serve(cluster, form, with_parent=with_parent))


def _hours(text: str) -> tuple[int, ...]:
    words = text.replace(";", " ").split()
    if not all(word.isdecimal() and int(word) < 24 for word in words):
        raise UsageError(
            f"--delete-when {text!r} names no hours; write some of 0 to 23 with ; between them, as 04;16."
        )
    return tuple(int(word) for word in words)


def _limits(text: str) -> list[float]:
    words = text.replace("%", " ").split()
    numbers = [int(word) for word in words if word.isdecimal()]
    if (
        len(words) != 3
        or len(numbers) != 3
        or not 0 < numbers[0] <= numbers[1] <= numbers[2] <= 100
    ):
        raise UsageError(
            f"--disk-limits {text!r} are not three rising percentages; write them as '75 85 90'."
        )
    return [number / 100 for number in numbers]


async def _serve(cluster: LocalCluster, form: str, *, with_parent: bool) -> None:
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, told_to_stop.set)
    parent = os.getppid()
    async with cluster:
        for store in cluster.stores.values():
            for line in store.said if isinstance(store, DiskStore) else ():
                click.echo(f"store: {line}", err=True)
        _say_ready(cluster, form)
        while not told_to_stop.is_set():
            try:
                async with asyncio.timeout(PARENT_LOOK_S if with_parent else None):
                    await told_to_stop.wait()
            except TimeoutError:
                if os.getppid() != parent:
                    return
    if form == "text":
        click.echo("stopped")


def _say_ready(cluster: LocalCluster, form: str) -> None:
    if form == "json":
        all_of_them = list(cluster.addresses)
        click.echo(
            json.dumps(
                {
                    "namesrv": cluster.namesrv,
                    "name_servers": all_of_them,
                    "brokers": cluster.brokers,
                }
            )
        )
        return
    for address in cluster.addresses:
        click.echo(f"name server {address}")
    for name, address in cluster.brokers.items():
        click.echo(f"broker {name} {address}")
    click.echo("ready; stop with Ctrl-C")
