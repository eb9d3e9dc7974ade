"""A throw-away server of a released version: one process on loopback, whose data and ports outlive its death.

    with KafkaServer("4.3.1", workdir=folder) as server:
        ...  # server.address: "127.0.0.1:PORT"

A product says what it needs (`fetch`), writes its files (`set_up`), and names its command and how one sees that it is
ready. It is killed and never asked to end: what it acknowledged survives that (the page cache lives), and its data go.
"""

from __future__ import annotations

import shutil
import socket
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from conformance.parts import ports
from conformance.parts.processes import Process
from specs.errors import TargetMisbehaved, UsageError

HOST = "127.0.0.1"
START_DEADLINE_S = 60.0
ANSWER_S = 5.0
CLEAN_END_S = 30.0


class LocalServer(ABC):
    """A context manager. workdir: an empty or missing folder that is the server's own.

    product: what people call it. versions: which can be had; default: the one that is meant where none is named.
    port_count: how many ports it needs; the first is the one that clients begin at.

    `start` raises Unavailable (a part is missing that can't be fetched) and TargetMisbehaved (it died, or was not ready
    in time).
    """

    product: ClassVar[str]
    versions: ClassVar[Sequence[str]]
    default: ClassVar[str]
    port_count: ClassVar[int] = 1

    def __init__(self, version: str, *, workdir: Path) -> None:
        self.version = version
        self.workdir = workdir.resolve()
        self.link_address: str | None = None
        """Where clients reach it that come over a link, for a server that has to be told; set before `start`."""
        self.peers: Sequence[LocalServer] = (self,)
        """The nodes of its cluster by their numbers, itself among them (`conformance.parts.local_cluster`)."""
        self._reservations: list[ports.Reservation] = []
        self._process: Process | None = None

    @classmethod
    def check_version(cls, version: str) -> None:
        """Raises UsageError, naming the known ones, if this server can't be had."""
        if version not in cls.versions:
            raise UsageError(
                f"There is no {cls.product} server {version!r} to be had; known: {', '.join(cls.versions)}."
            )

    @abstractmethod
    def fetch(self) -> None:
        """Get what it needs, if it is not here."""

    @abstractmethod
    def set_up(self) -> None:
        """Write what it reads before its first start; the folder is there, and the ports are reserved."""

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Starts it, on the data that are there."""

    @staticmethod
    @abstractmethod
    def answers(host: str, port: int) -> bool:
        """Does such a server answer there, whoever started it? Asked without logging in, and without TLS."""

    def is_ready(self) -> bool:
        """Does it answer its clients? An open port may come a moment earlier."""
        return self.answers(HOST, self.port())

    def port(self, number: int = 0) -> int:
        """One of its ports; valid after `start`."""
        return self._reservations[number].port

    @property
    def address(self) -> str:
        """Where clients begin, "127.0.0.1:PORT"; valid after `start`."""
        return f"{HOST}:{self.port()}"

    @property
    def link_end(self) -> str:
        """Where a link is to lead, "127.0.0.1:PORT"; valid after `start`."""
        return self.address

    @property
    def data(self) -> Path:
        """The folder of its data."""
        return self.workdir / "data"

    @property
    def process(self) -> Process:
        """`pause`, `resume`, `kill` it."""
        if self._process is None:
            raise TargetMisbehaved(f"{self.product} {self.version} is not running.")
        return self._process

    @property
    def number(self) -> int:
        """Its own among the nodes of its cluster, from 1."""
        return self.peers.index(self) + 1

    def start(self) -> str:
        """Set it up, start it, and wait until it answers; its address."""
        self.fetch()
        try:
            self.reserve()
            self.set_up()
            self.start_again()
        except BaseException:
            self.close()
            raise
        return self.address

    def reserve(self) -> None:
        """Its ports and its folder are its own from now on."""
        self._reservations = [ports.reserve() for _ in range(self.port_count)]
        self.workdir.mkdir(parents=True, exist_ok=True)

    def said_version(self) -> str | None:
        """What it answers itself to who asks for its version; None for a product that is not asked."""
        return None

    def end(self) -> None:
        """SIGTERM, and a clean end; its data stay."""
        process, self._process = self.process, None  # from now on its death is no surprise
        process.stop(CLEAN_END_S)

    def start_again(self) -> None:
        """After `kill` or `end`, on the same data and ports."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start it and wait for nothing."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
        self._process = Process(
            f"The server of {self.product} {self.version}",
            self.command(),
            log=self.workdir / "server.out",
        )

    def wait_until_ready(self) -> None:
        """Raises TargetMisbehaved where it died, or does not answer in time."""
        self.process.wait_until(
            self.is_ready,
            what=f"answer at {self.address}",
            deadline_s=START_DEADLINE_S,
            every_s=0.1,
        )

    def check_alive(self) -> None:
        """Raises PartFailed where it has died and nobody here has ended it. From any thread."""
        process = self._process
        if process is not None and not process.alive and self._process is process:
            process.check_alive()

    def kill(self) -> None:
        """SIGKILL; its data stay."""
        process, self._process = self.process, None
        process.kill()

    def close(self) -> None:
        """Kill it, give the ports back and delete its data (the log stays). A second call does nothing."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        for reservation in self._reservations:
            reservation.release()
        self._reservations = []
        shutil.rmtree(self.data, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def listens(host: str, port: int) -> bool:
    """Does anybody take a connection there?"""
    try:
        socket.create_connection((host, port), ANSWER_S).close()
    except OSError:
        return False
    return True
