"""A throw-away NATS server with JetStream on this machine, built from the released Go module.

    with NatsServer("2.15.2", workdir=folder) as server:
        ...  # server.address: "127.0.0.1:PORT"

What is decided here, found by running it:
- Ready means that its greeting says that JetStream is on.
- Measured: built in 15 to 80 s with 1 GB, ready in less than 0.7 s, 18 MB. Acknowledged messages survive SIGKILL (the
  page cache lives); a power cut is another thing, since the store is synced each two minutes.

    python -m conformance.parts.nats 2.15.2
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.parts import golang
from conformance.parts.local_server import HOST, LocalServer
from conformance.parts.places import tools_dir
from conformance.parts.telling import tell
from conformance.parts.wheels import Wheel
from specs.errors import UsageError

VERSIONS = (
    "2.10.9",
    "2.10.22",
    "2.10.24",
    "2.10.27",
    "2.10.29",
    "2.11.0",
    "2.11.1",
    "2.12.1",
    "2.12.15",
    "2.14.3",
    "2.14.9",
    "2.15.0",
    "2.15.2",
)
"""Servers that were built and run."""
DEFAULT = "2.15.2"
CLIENTS = ("2.16.0",)
"""Versions of nats-py that are driven."""
DEFAULT_CLIENT = "2.16.0"
MODULE = "github.com/nats-io/nats-server/v2"
ANSWER_S = 2.0
CLUSTER = "inorder"
GREETING = b"INFO "


def path(version: str) -> Path:
    """Where the server's binary lies, there or not. Raises UsageError for an unknown version."""
    NatsServer.check_version(version)
    return tools_dir() / "nats" / version / "nats-server"


def present(version: str) -> bool:
    """Whether the binary is there."""
    return os.access(path(version), os.X_OK)


def ensure(version: str) -> Path:
    """The binary, built now if it is not there.

    Raises UsageError for an unknown version, Unavailable if it can't be built.
    """
    if not present(version):
        program = golang.Program(f"NATS {version}", f"{MODULE}@v{version}", "nats-server")
        golang.build(program, path(version))
    return path(version)


def client(version: str) -> Wheel:
    """nats-py. Raises UsageError for an unknown version."""
    if version not in CLIENTS:
        raise UsageError(f"There is no nats-py {version!r} to drive; known: {', '.join(CLIENTS)}.")
    return Wheel("nats-py", version)


class NatsServer(LocalServer):
    """One node with JetStream, alone or of a cluster. workdir: an empty or missing folder that is its own."""

    product = "NATS"
    versions = VERSIONS
    default = DEFAULT
    port_count = 2

    def fetch(self) -> None:
        ensure(self.version)

    def set_up(self) -> None:
        """It reads nothing."""

    def command(self) -> list[str | Path]:
        return [
            path(self.version),
            *("-a", HOST, "-p", str(self.port()), "-js", "-sd", str(self.data)),
            *(self._clustered() if len(self.peers) > 1 else ()),
        ]

    def _clustered(self) -> list[str]:
        routes = [f"nats://{HOST}:{peer.port(1)}" for peer in self.peers]
        own = routes[self.number - 1]
        named = ("--server_name", str(self.number), "--cluster_name", CLUSTER)
        return [*named, "--cluster", own, "--routes", ",".join(routes)]

    @staticmethod
    def answers(host: str, port: int) -> bool:
        """Does a NATS server with JetStream greet there?"""
        return bool(greeting(host, port).get("jetstream"))

    def said_version(self) -> str | None:
        return str(greeting(HOST, self.port()).get("version"))


def greeting(host: str, port: int) -> dict[str, Any]:
    """What a NATS server says of itself to who connects; nothing where none does."""
    try:
        with socket.create_connection((host, port), ANSWER_S) as connection:
            line = connection.makefile("rb").readline()
    except OSError:
        return {}
    try:
        told = json.loads(line.removeprefix(GREETING)) if line.startswith(GREETING) else None
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def parts(versions: Sequence[str]) -> Iterator[str]:
    """Build the named servers and fetch the default client; a line for each."""
    for version in versions or (DEFAULT,):
        yield f"{version}: {ensure(version)}"
    yield f"nats-py: {client(DEFAULT_CLIENT).ensure()}"


if __name__ == "__main__":
    sys.exit(tell(parts(sys.argv[1:])))
