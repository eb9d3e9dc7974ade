"""A disk of one process alone that can be full, or slow, while it runs.

    disk = TroubledDisk(folder)
    process = Process("broker", ["java", ...], log=log, env=environment_of(disk.told))
    disk.fill(full=True)                      # whoever asks how much room there is hears that there is none
    disk.slow(400)                            # each sync takes 400 ms longer

A small library (`preload`, `troubled_disk.c`) answers the process's questions for room (statvfs), and takes its time
before each of its syncs (fsync, fdatasync, msync). Nothing is refused that is written: it is for a program that looks
how much room there is, and does not write where there is none, as brokers do. While it lasts the machine's own disk
has no say, so that a full one does not decide what is judged.
"""

from __future__ import annotations

from pathlib import Path

from conformance.parts.preload import Library, Told, said_by
from specs.errors import Unavailable

_MS = 1_000_000
_FULL, _LATER_NS = 0, 1
_TRIED_MS = 100
_ASKS = """
import mmap, os, tempfile, time
found = os.statvfs("/")
with tempfile.TemporaryFile() as file:
    file.write(b"?" * mmap.PAGESIZE)
    file.flush()
    page = mmap.mmap(file.fileno(), 0)
    took = []
    for sync in (lambda: os.fsync(file.fileno()), lambda: os.fdatasync(file.fileno()), page.flush):
        began = time.monotonic_ns()
        sync()
        took.append(time.monotonic_ns() - began)
print(found.f_bfree + found.f_bavail, min(took))
"""


class TroubledDisk:
    """folder: for its file. Raises Unavailable where no such disk can be had (`why_not`)."""

    def __init__(self, folder: Path) -> None:
        if (why := why_not()) is not None:
            raise Unavailable(f"a disk can't be filled or slowed here: {why}")
        self.told = Told(LIBRARY, folder)

    def fill(self, *, full: bool) -> None:
        """It has no room, or has room again."""
        self.told.put(_FULL, int(full))

    @property
    def is_full(self) -> bool:
        return self.told.get(_FULL) != 0

    def slow(self, ms: int) -> None:
        """Each sync that begins from now on takes so much longer; 0: as long as ever."""
        self.told.put(_LATER_NS, ms * _MS)

    def close(self) -> None:
        """Nobody troubles it any more. A second call does nothing."""
        self.told.close()


def why_not() -> str | None:
    """Why no such disk can be had on this machine, and what mends it; None where it can. Tried once."""
    return LIBRARY.why_not()


def _works(told: Told) -> bool:
    """Does a process hear that there is no room, and wait for each of its syncs?"""
    told.put(_FULL, 1)
    told.put(_LATER_NS, _TRIED_MS * _MS)
    said = said_by(_ASKS, told)
    return len(said) == 2 and int(said[0]) == 0 and int(said[1]) >= _TRIED_MS * _MS


LIBRARY = Library(
    "troubled-disk", Path(__file__).with_name("troubled_disk.c"), "INORDER_TROUBLED_DISK", _works
)
