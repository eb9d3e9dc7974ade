"""A throw-away RabbitMQ on this machine: one node out of Debian's packages, with an epmd of its own.

    with RabbitServer("3.10.8", workdir=folder) as server:
        ...  # server.address: "127.0.0.1:PORT"

What is decided here, found by running it:
- No registry has a server of another version than Debian's. Its packages and Erlang's are unpacked and not installed;
  Erlang is told where it lies by the environment, so that no file of theirs is changed.
- A node finds itself by Erlang's port mapper. A shared one would outlive us and may be somebody else's, so each server
  has its own, on a port of its own.
- The commands become one another: the process that is killed is the node itself.
- Messages that are persistent and confirmed survive SIGKILL.
- Ready means that it answers a greeting of AMQP: the port is open a moment before that.
- Measured: fetched in 4 s (32 MB, unpacked 54 MB), ready in 5 to 9 s, 141 MB.

    python -m conformance.parts.rabbitmq 3.10.8
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.parts import debian
from conformance.parts.local_server import HOST, LocalServer, listens
from conformance.parts.places import tools_dir
from conformance.parts.processes import Process
from conformance.parts.telling import tell
from conformance.parts.wheels import Wheel
from specs.errors import UsageError

VERSIONS = ("3.10.8",)
"""Servers that were run."""
DEFAULT = "3.10.8"
CLIENTS = ("1.4.4",)
"""Versions of pika that are driven."""
DEFAULT_CLIENT = "1.4.4"
ERLANG = (
    "asn1", "base", "crypto", "eldap", "inets", "mnesia", "os-mon", "parsetools", "public-key", "runtime-tools", "ssl",
    "syntax-tools", "tools", "xmerl",
)  # fmt: skip
PACKAGES = ("rabbitmq-server", *(f"erlang-{name}" for name in ERLANG))
NODE = "inorder@localhost"
ANSWER_S = 5.0
GREETING = b"AMQP\x00\x00\x09\x01"
METHOD = b"\x01\x00\x00"
"""How the answer to it begins: a method, on channel 0."""
PORT_MAPPER_DEADLINE_S = 10.0
_ERL = """#!/bin/sh
exec "$BINDIR/erlexec" "$@"
"""
"""Debian's own has the folder in it where it would be installed."""
_CONFIG = """listeners.tcp.local = {address}
log.console = true
log.console.level = warning
log.file = false
vm_memory_high_watermark.absolute = 400MB
disk_free_limit.absolute = 50MB
"""


def unpacked(version: str) -> Path:
    """Where Debian's packages of this server lie, there or not. Raises UsageError for an unknown version."""
    RabbitServer.check_version(version)
    return tools_dir() / "rabbitmq" / version


def present(version: str) -> bool:
    """Whether they are there."""
    return unpacked(version).is_dir()


def ensure(version: str) -> Path:
    """The folder, fetched now if it is not there.

    Raises UsageError for an unknown version, Unavailable if it can't be fetched.
    """
    made = unpacked(version)
    if not present(version):

        def why_not(new: Path) -> str | None:
            if home(new, version).is_dir():
                return None
            there = ", ".join(sorted(each.name for each in home(new, version).parent.glob("*")))
            return f"Debian's packages here are of {there}, not of RabbitMQ {version}; that is Debian 12's."

        debian.unpack(f"RabbitMQ {version}", PACKAGES, made, why_not)
    return made


def home(root: Path, version: str) -> Path:
    """RabbitMQ itself among what was unpacked."""
    return root / "usr" / "lib" / "rabbitmq" / "lib" / f"rabbitmq_server-{version}"


def client(version: str) -> Wheel:
    """pika. Raises UsageError for an unknown version."""
    if version not in CLIENTS:
        raise UsageError(f"There is no pika {version!r} to drive; known: {', '.join(CLIENTS)}.")
    return Wheel("pika", version)


class RabbitServer(LocalServer):
    """One node. workdir: an empty or missing folder that is the server's own."""

    product = "RabbitMQ"
    versions = VERSIONS
    default = DEFAULT
    port_count = 3

    def __init__(self, version: str, *, workdir: Path) -> None:
        super().__init__(version, workdir=workdir)
        self._port_mapper: Process | None = None

    def fetch(self) -> None:
        ensure(self.version)

    def set_up(self) -> None:
        self.data.mkdir(exist_ok=True)
        (self.workdir / "rabbitmq.conf").write_text(_CONFIG.format(address=self.address))
        erl = self.workdir / "bin" / "erl"
        erl.parent.mkdir(exist_ok=True)
        erl.write_text(_ERL)
        erl.chmod(0o755)
        epmd: list[str | Path] = [self._erts / "epmd", "-address", HOST, "-port", str(self.port(1))]
        log = self.workdir / "epmd.out"
        self._port_mapper = Process("Erlang's port mapper", epmd, log=log)
        self._port_mapper.wait_until(
            lambda: listens(HOST, self.port(1)), what="listen", deadline_s=PORT_MAPPER_DEADLINE_S
        )

    def command(self) -> list[str | Path]:
        rabbit = home(unpacked(self.version), self.version)
        environment = {
            **self._of_erlang(),
            "RABBITMQ_NODENAME": NODE,
            "RABBITMQ_DIST_PORT": str(self.port(2)),
            "RABBITMQ_CONFIG_FILE": self.workdir / "rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": self.workdir / "none",
            "RABBITMQ_MNESIA_BASE": self.data,
            "RABBITMQ_LOG_BASE": self.data,
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.workdir / "none",
            "RABBITMQ_PLUGINS_DIR": rabbit / "plugins",
            "RABBITMQ_ALLOW_INPUT": "true",  # the script then becomes the node, and waits for none
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput +S 2:2 -kernel inet_dist_use_interface {127,0,0,1}",
        }
        told = [f"{name}={value}" for name, value in environment.items()]
        return ["env", *told, "sh", rabbit / "sbin" / "rabbitmq-server"]

    def _of_erlang(self) -> dict[str, str | Path]:
        return {
            "PATH": f"{self.workdir / 'bin'}:/usr/bin:/bin",
            "HOME": self.data,
            "ROOTDIR": self._erts.parents[1],
            "BINDIR": self._erts,
            "EMU": "beam",
            "PROGNAME": "erl",
            "ERL_LIBS": self._erts.parents[1] / "lib",
            "LD_LIBRARY_PATH": debian.libraries(unpacked(self.version)),
            "ERL_EPMD_ADDRESS": HOST,
            "ERL_EPMD_PORT": str(self.port(1)),
        }

    @property
    def _erts(self) -> Path:
        erlang = unpacked(self.version) / "usr" / "lib" / "erlang"
        return next(erlang.glob("erts-*")) / "bin"

    @staticmethod
    def answers(host: str, port: int) -> bool:
        """Does a server of AMQP 0-9-1 greet there?"""
        try:
            with socket.create_connection((host, port), ANSWER_S) as connection:
                connection.sendall(GREETING)
                return connection.recv(len(METHOD)) == METHOD
        except OSError:
            return False

    def close(self) -> None:
        if self._port_mapper is not None:
            self._port_mapper.kill()
            self._port_mapper = None
        super().close()


def parts(versions: Sequence[str]) -> Iterator[str]:
    """Fetch the named servers and the default client; a line for each."""
    for version in versions or (DEFAULT,):
        yield f"{version}: {ensure(version)}"
    yield f"pika: {client(DEFAULT_CLIENT).ensure()}"


if __name__ == "__main__":
    sys.exit(tell(parts(sys.argv[1:])))
