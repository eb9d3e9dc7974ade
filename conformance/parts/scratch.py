"""Temporary folders that outlive nobody for long: who was killed left his, and the next one of its kind removes it.

A folder's owner holds a lock on a file in it, which the kernel lets go of when he dies, however he dies. Whoever makes
a folder of the same prefix first removes those that nobody holds. One without such a file may be just coming into
being, or somebody else's, and is left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import IO

HELD = ".held"


class Scratch(tempfile.TemporaryDirectory[str]):
    """As a `TemporaryDirectory`. prefix: what its name begins with, one for each kind of content."""

    def __init__(self, prefix: str) -> None:
        remove_abandoned(prefix)
        super().__init__(prefix=prefix)
        self._lock = _hold(Path(self.name))

    def cleanup(self) -> None:
        super().cleanup()
        self._lock.close()


def remove_abandoned(prefix: str) -> None:
    """Remove the folders of that prefix whose owners are dead."""
    for held in Path(tempfile.gettempdir()).glob(f"{prefix}*/{HELD}"):
        with contextlib.suppress(OSError), held.open("rb") as lock:  # another one may remove it too
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(held.parent, ignore_errors=True)


def _hold(folder: Path) -> IO[bytes]:
    """The file has its name only once it is locked, so that nobody finds it without an owner."""
    coming = folder / f"{HELD}.new"
    lock = coming.open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    coming.rename(folder / HELD)
    return lock
