"""The disk as the store sees it: a port with two bodies, the file system and a simulated disk that can lose.

What is written is seen by every later read at once, and outlives the process. It outlives the machine only when
it was synced: the bytes of a file by `DiskFile.sync`, the names in a folder (new, renamed and removed files) by
`Disk.sync_folder`. Of what was not synced any part may be there after a crash.

Paths are relative to the store's folder, with `/` between names. Everything blocks. All methods raise DiskFull
when there is no room and DiskFailed for any other trouble.
"""

from __future__ import annotations

from typing import Protocol


class DiskFile(Protocol):
    """An open file. `sync` may run in another thread than the rest."""

    def size(self) -> int: ...

    def read(self, at: int, length: int) -> bytes:
        """The bytes there; fewer where the file ends."""

    def next_data(self, at: int) -> int:
        """From where on, at or behind that place, there may be anything but zeros; the file's size when nowhere."""

    def write(self, at: int, data: bytes) -> None:
        """Put the bytes there; the file grows if need be. After DiskFull any part of them may be there."""

    def resize(self, size: int) -> None:
        """Cut it, or let it grow by zeros that take no room."""

    def sync(self) -> None:
        """When this returns, every byte that was written before outlives a crash."""

    def close(self) -> None: ...


class Disk(Protocol):
    """One folder of files and folders, and the right to be the only one who works in it."""

    def lock(self) -> None:
        """Raises StoreInUse when somebody else has it. Held until `release` or the end of the process."""

    def release(self) -> None: ...

    def names(self, folder: str) -> list[str]:
        """What lies in the folder, sorted; empty when there is no such folder."""

    def exists(self, path: str) -> bool: ...

    def create(self, path: str, size: int = 0) -> DiskFile:
        """A new file of that many zero bytes, in place of one of that name; folders on the way are made."""

    def open(self, path: str) -> DiskFile:
        """A file that exists."""

    def link(self, path: str, name: str) -> None:
        """A second name for the file; what had that name before has it no more."""

    def rename(self, path: str, name: str) -> None:
        """In one step: there is always a file of that name, the old or the new."""

    def remove(self, path: str) -> None: ...

    def use(self) -> float:
        """The share of the whole disk that is in use, by whomever, 0 to 1."""

    def sync_folder(self, folder: str) -> None:
        """When this returns, the names in the folder are as they are now, whatever happens."""
