"""The disk of this machine: a folder, by the calls of the operating system.

`sync` is fdatasync of a descriptor that was open when the bytes were written, so that an error of a write behind
is told to us; a new folder's name is synced in the folder above it when the first name in it is to be safe, and not
before: sixty new queues are sixty folders, whose files need not be safe at once. The lock is the one that RocketMQ
takes (a record lock on the file `lock`), so that a real broker and we exclude each other, and a second one that
excludes two stores in one process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reference_impl.storage.errors import DiskFailed, DiskFull, StoreInUse

LOCK = "lock"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _as_ours(what, error) from error


def _as_ours(what: str, error: OSError) -> DiskFull | DiskFailed:
    kind = DiskFull if error.errno in _NO_ROOM else DiskFailed
    return kind(f"{what}: {error.strerror or error}.")


class RealFile:
    """See `disk.DiskFile`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._closing = threading.Lock()  # a close waits for a sync that runs in another thread

    def size(self) -> int:
        with _told(f"The size of {self._path} can't be read"):
            return os.fstat(self._descriptor).st_size

    def read(self, at: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, at)
        except OSError as error:
            raise _as_ours(f"{self._path} can't be read", error) from error

    def next_data(self, at: int) -> int:
        """A segment is mostly a hole, and a hole need not be read."""
        try:
            return os.lseek(self._descriptor, at, os.SEEK_DATA)
        except OSError as error:
            return self.size() if error.errno == errno.ENXIO else at

    def write(self, at: int, data: bytes) -> None:
        try:
            written = os.pwrite(self._descriptor, data, at)
            while written < len(data):  # a short write: the next one tells why
                written += os.pwrite(self._descriptor, data[written:], at + written)
        except OSError as error:
            raise _as_ours(f"{self._path} can't be written", error) from error

    def resize(self, size: int) -> None:
        with _told(f"The size of {self._path} can't be changed"):
            os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        with self._closing, _told(f"{self._path} can't be synced"):
            if self._descriptor >= 0:
                os.fdatasync(self._descriptor)

    def close(self) -> None:
        with self._closing:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)


class RealDisk:
    """See `disk.Disk`. root: the store's folder; it and its parents are made."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock: int | None = None
        self._new: set[Path] = set()  # folders that we made and whose own names are not yet synced
        with _told(f"The folder {root} can't be made"):
            self._make(root)
        self._sync_names_of(root)

    def lock(self) -> None:
        path = self.root / LOCK
        with _told(f"The lock file {path} can't be made"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except OSError as error:
            os.close(descriptor)
            raise StoreInUse(
                f"The store {self.root} is in use by another process; end that first, or choose another folder."
            ) from error
        self._lock = descriptor

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def names(self, folder: str) -> list[str]:
        path = self.root / folder
        with _told(f"The folder {path} can't be read"):
            try:
                return sorted(os.listdir(path))
            except (FileNotFoundError, NotADirectoryError):
                return []

    def exists(self, path: str) -> bool:
        return (self.root / path).is_file()

    def create(self, path: str, size: int = 0) -> RealFile:
        place = self.root / path
        with _told(f"{place} can't be made"):
            self._make(place.parent)
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                os.ftruncate(descriptor, size)
            except OSError:
                os.close(descriptor)
                raise
        return RealFile(place, descriptor)

    def open(self, path: str) -> RealFile:
        place = self.root / path
        with _told(f"{place} can't be opened"):
            return RealFile(place, os.open(place, os.O_RDWR | os.O_CLOEXEC))

    def link(self, path: str, name: str) -> None:
        with _told(f"{self.root / name} can't be made"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.root / name)
            os.link(self.root / path, self.root / name)

    def rename(self, path: str, name: str) -> None:
        with _told(f"{self.root / path} can't be renamed"):
            os.replace(self.root / path, self.root / name)

    def remove(self, path: str) -> None:
        with _told(f"{self.root / path} can't be removed"):
            os.remove(self.root / path)

    def use(self) -> float:
        """As `df` says it: what only the administrator may use counts as used."""
        with _told(f"How full the disk of {self.root} is can't be read"):
            found = os.statvfs(self.root)
        used = found.f_blocks - found.f_bfree
        return used / max(1, used + found.f_bavail)

    def sync_folder(self, folder: str) -> None:
        place = self.root / folder
        if place.is_dir():
            _sync_folder(place)
            self._sync_names_of(place)

    def _make(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        self._new.add(folder)

    def _sync_names_of(self, folder: Path) -> None:
        """So that the way to the folder is safe: its name, and those of the folders above it."""
        for new in (folder, *folder.parents):
            if new in self._new:
                _sync_folder(new.parent)
                self._new.discard(new)


def _sync_folder(path: Path) -> None:
    with _told(f"The folder {path} can't be synced"):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
