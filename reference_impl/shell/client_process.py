"""One client of a plan as a process of its own, so that it can be killed, paused or put into a container.

    python -m reference_impl.shell.client_process --plan plan.json --client c1 --namesrv 127.0.0.1:9876 --out run/

It starts the client, prints `ready`, and works until SIGTERM or SIGINT, which end it in good order. Its journal
lies in `run/journal/`; a SIGKILL leaves the journal without an end, and the history says so.
"""

from __future__ import annotations

import argparse
import asyncio
import pkgutil
import signal
import sys
from pathlib import Path

from reference_impl.shell.clock import monotonic_s
from reference_impl.shell.planned import client_node
from reference_impl.shell.stalls import Stalls
from specs.errors import InorderError
from specs.history.journal import Journal
from specs.plan.plan import Plan, read_plan


async def work(plan: Plan, client: str, options: argparse.Namespace, began_s: float) -> None:
    """Run one client until it is told to stop. options: as `main` reads them."""
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told_to_stop.set)
    made = None if options.consumer is None else pkgutil.resolve_name(options.consumer)
    with Journal(options.out, client) as journal:
        via = dict(pair.split("=", 1) for pair in options.via)
        node = client_node(plan, client, options.namesrv, journal, began_s, consumer=made, via=via)
        stalls = asyncio.create_task(
            Stalls(options.out, lambda: (client,), f"{client}.stalls").watch()
        )
        node.start()
        print("ready", flush=True)  # noqa: T201 (the parent waits for this line)
        await told_to_stop.wait()
        await node.shutdown()
        stalls.cancel()
        await asyncio.wait([stalls])


def main(words: list[str] | None = None) -> int:
    """The process's main; 0 after a clean stop, else the error's exit code with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="client_process", description=__doc__.splitlines()[0])
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--namesrv", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--began-s", type=float, default=None, help="when the run began, on the monotonic clock"
    )
    parser.add_argument(
        "--consumer", metavar="MODULE:CLASS", help="a consumer's core that is not the correct one"
    )
    parser.add_argument(
        "--via",
        metavar="BROKER=PROXY",
        action="append",
        default=[],
        help="a broker's HOST:PORT, and that of a proxy before it",
    )
    options = parser.parse_args(words)
    began_s = monotonic_s() if options.began_s is None else options.began_s
    try:
        asyncio.run(work(read_plan(options.plan), options.client, options, began_s))
    except InorderError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
