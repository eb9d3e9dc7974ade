"""Temporary folders that outlive nobody for long: who was killed left his, and the next start removes it.

A folder's owner holds a lock on a file in it, which the kernel lets go of when he dies, however he dies. Whoever comes
next removes those of this user that nobody holds. One without such a file may be just coming into being, or somebody
else's, and is left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import IO

PREFIX = "inorder-"
HELD = ".held"


class Scratch(tempfile.TemporaryDirectory[str]):
    """As a `TemporaryDirectory`. what: comes behind the project's name in the folder's. place: where it is made."""

    def __init__(self, what: str, place: str | os.PathLike[str] | None = None) -> None:
        super().__init__(prefix=f"{PREFIX}{what}-", dir=place)
        self._lock = _hold(Path(self.name))

    def cleanup(self) -> None:
        super().cleanup()
        if self._lock is not None:
            self._lock.close()


def remove_abandoned(place: Path) -> None:
    """Remove this user's folders there whose owners are dead. A file system that can't say so keeps them."""
    for held in place.glob(f"{PREFIX}*/{HELD}"):
        with contextlib.suppress(OSError):
            if not _is_ours(held.parent):
                continue
            with held.open("rb") as lock:  # another process may be removing it too
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(held.parent, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    """A folder of this user's, and no link to one."""
    there = folder.lstat()
    return stat.S_ISDIR(there.st_mode) and there.st_uid == os.getuid()


def _hold(folder: Path) -> IO[bytes] | None:
    """The file has its name only once it is locked, so that nobody finds it without an owner.

    None on a file system without locks: such a folder is never taken for an abandoned one.
    """
    coming = folder / f"{HELD}.new"
    try:
        lock = coming.open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        coming.rename(folder / HELD)
    except OSError:
        return None
    return lock
