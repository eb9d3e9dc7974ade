"""Free TCP ports, also for servers that need several ports at fixed distances.

`bind(0)` and close is not enough: a broker listens on its port, on two below and on one above, and parallel
test workers would be given the same free port twice. So a port is *reserved* with a file lock, which the
kernel lifts when its holder dies, and it is taken from below the range from which the kernel serves outgoing
connections.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from specs.errors import TargetMisbehaved

LOWEST = 10_240
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def _highest() -> int:
    try:
        low = int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        low = 32_768
    return low - 1 if low > LOWEST + 1000 else 32_767


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of every address of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(
                ("0.0.0.0", port)
            )  # the wildcard: some of our servers listen there, whatever we ask for
            probe.listen(1)
        except OSError:
            return False
    return True


class Reservation:
    """A port (and its neighbours at `offsets`) that `reserve` gives to nobody else. A context manager."""

    def __init__(self, port: int, locks: list[int]) -> None:
        self.port = port
        self._locks = locks

    def release(self) -> None:
        """Gives the port back; a second call does nothing."""
        for lock in self._locks:
            os.close(lock)
        self._locks = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def reserve(offsets: Sequence[int] = (0,)) -> Reservation:
    """Reserves a port p such that every p + offset is free. Raises TargetMisbehaved if there is none."""
    folder = Path(tempfile.gettempdir()) / f"inorder-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    lowest, highest = LOWEST - min(offsets), _highest() - max(offsets)
    # Each process begins elsewhere, so that they rarely try the same ports.
    start = lowest + (os.getpid() * 61) % (highest - lowest)
    for port in itertools.chain(range(start, highest), range(lowest, start)):
        locks = _lock_all(folder, [port + offset for offset in offsets])
        if locks is not None:
            return Reservation(port, locks)
    raise TargetMisbehaved(f"No free TCP port between {lowest} and {highest} on this machine.")


def _lock_all(folder: Path, ports: list[int]) -> list[int] | None:
    locks: list[int] = []
    for port in ports:
        lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        locks.append(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = is_free(port)
        except BlockingIOError:
            free = False
        if not free:
            for taken in locks:
                os.close(taken)
            return None
    return locks
