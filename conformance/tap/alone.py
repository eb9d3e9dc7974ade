"""The tap as a program of its own beside clients in containers: `python -m conformance.tap.alone`.

It needs the standard library only, and writes into a folder that its starter looks into: the journal; `tap.json`, once
it listens or has found that it can't; and `peers.jsonl`, a line for each connection whose client is known, with its
address. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.tap.proxy import Tap
from conformance.tap.rows import TapRecorder
from reference_impl.shell.errors import split_address
from specs.errors import UsageError
from specs.history.clock import host_clock
from specs.history.journal import Journal
from specs.vocabulary import Level

READY = "tap.json"
PEERS = "peers.jsonl"
REACHED_S = 10.0


def own_address(upstream: str) -> str:
    """This machine's address as whoever is in the upstream's network sees it. Raises UsageError."""
    host, port = split_address(upstream)
    try:
        with socket.create_connection((host, port), REACHED_S) as connection:
            return str(connection.getsockname()[0])
    except OSError as error:
        raise UsageError(f"the name server {upstream} is not reached: {error}") from error


async def serve(upstream: str, port: int, folder: Path) -> None:
    """Until SIGTERM."""
    told_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_stop.set)
    peers = os.open(folder / PEERS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    clock = host_clock()

    def met(client: str, peer: str) -> None:
        line = {"t": clock.monotonic_us(), "client": client, "host": peer.rpartition(":")[0]}
        os.write(peers, json.dumps(line).encode() + b"\n")

    with Journal(folder, "tap", common={"level": Level.TAP}) as journal:
        recorder = TapRecorder(journal, met=met)
        tap = Tap(upstream, recorder, host=own_address(upstream))
        await tap.start(port)
        write(folder / READY, {"namesrv": tap.namesrv})
        try:
            await told_to_stop.wait()
        finally:
            await tap.stop()
            write(folder / READY, {"namesrv": tap.namesrv, "unreadable": recorder.unreadable})
            os.close(peers)


def write(path: Path, what: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(what), encoding="utf-8")
    part.replace(path)


def main() -> int:
    """An error that its user can mend is told in `tap.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    try:
        asyncio.run(serve(asked.upstream, asked.port, asked.out))
    except UsageError as error:
        write(asked.out / READY, {"error": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
