"""`inorder tap`: a proxy that records what clients ask of a cluster and are told, for `inorder check`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import click

from conformance import again
from conformance.cli.options import OutFolder, profile_option
from conformance.cli.people import tell
from conformance.tap.faults import Faults, Rule, parse_rule
from conformance.tap.proxy import Tap
from conformance.tap.rows import RECORDS, TapRecorder
from specs.documents import json_in
from specs.errors import UsageError
from specs.history.journal import Journal
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import compact_journal
from specs.plan.config import Config
from specs.vocabulary import Level


@click.command(name="tap")
@click.option(
    "--upstream", required=True, metavar="HOST:PORT", help="The name server of the cluster."
)
@click.option(
    "--out",
    required=True,
    type=OutFolder(),
    metavar="DIR",
    help="Where the history goes.",
)
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Where clients find the tap. Default: any.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="RULE",
    help="As LOCK_BATCH_MQ#1=lose-answer; repeatable.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON: the clients' times where not the default.",
)
@profile_option("What was promised, for `inorder check`.")
@click.option(
    "--format", "form", default="text", show_default=True, type=click.Choice(["text", "json"])
)
def command(
    upstream: str,
    out: Path,
    port: int,
    faults: tuple[str, ...],
    config: Path | None,
    profile: str | None,
    form: str,
) -> int:
    """Stand between unmodified clients and a cluster, and record what they do.

    Give the clients the name server address that is printed, nothing else. Ends with SIGINT or SIGTERM; then
    `inorder check DIR` judges what was seen.
    """
    rules = tuple(parse_rule(text) for text in faults)
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        raise UsageError(f"{out} is there already; a history gets a folder of its own")
    info = RunInfo(
        run=out.resolve().name,
        target=f"rocketmq:{upstream}",
        parties={
            "broker": f"brokers of {upstream}",
            "client": "tapped clients",
            "producer": "tapped producers",
        },
        profile=profile,
        levels=(Level.TAP,),
        clock_bounds_us={"host": 0},
        closed_world=False,
        records=RECORDS,
        config=Config() if config is None else read_config(config),
    )
    out.mkdir(parents=True, exist_ok=True)
    write_runinfo(out, info)
    with Journal(out, "tap", common={"level": Level.TAP}) as journal:
        recorder = TapRecorder(journal)
        asyncio.run(_serve(upstream, port, recorder, rules, form))
    history = compact_journal(out)
    promised = "" if profile else " --profile NAME"
    tell(
        f"{sum(1 for _ in history.rows())} events in {out}; judge them with: {again.command('check', out)}{promised}"
    )
    if recorder.unreadable:
        tell(f"{recorder.unreadable} frames passed that could not be read; they left no events")
    return 0


def read_config(path: Path) -> Config:
    """The times that clients and broker were told. Raises UsageError for what can't be read."""
    found = json_in(path)
    if not isinstance(found, dict):
        raise UsageError(f'{path} must hold an object, as {{"broker_lease_ms": 3000}}')
    return Config.from_json(found)


async def _serve(
    upstream: str, port: int, recorder: TapRecorder, rules: tuple[Rule, ...], form: str
) -> None:
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, told_to_stop.set)
    tap = Tap(upstream, recorder, Faults(rules))
    await tap.start(port)
    try:
        if form == "json":
            click.echo(
                json.dumps({"namesrv": tap.namesrv, "upstream": upstream, "pid": os.getpid()})
            )
        else:
            click.echo(f"name server {tap.namesrv}")
            tell(f"passing on to {upstream}; stop with Ctrl-C")
        await told_to_stop.wait()
    finally:
        await tap.stop()
