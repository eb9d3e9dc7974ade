"""A disk in memory whose power can fail at any operation, and that loses what was not synced.

What a power failure leaves of the operations since the last sync is chosen by a `Keep`: of a write any of its
sectors and of a sector any first part; of the changes of a folder's names any first part, in their order (a file
system's journal keeps it). What was synced is always there.
A disk can also be full: a write that finds too little room writes what fits and fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from reference_impl.storage.errors import DiskFailed, DiskFull, StoreInUse

SECTOR = 512


class PowerLost(Exception):
    """The machine is gone. The operation that was under way may have happened, in part or not at all."""


class Keep:
    """What survives: everything. is_last: the very last operation before the power failed."""

    def writes(self, at: int, length: int, is_last: bool) -> list[tuple[int, int]]:
        """Which parts of a write of that many bytes survive, as (first, end) within it. at: where in the file."""
        return [(0, length)]

    def resizes(self, is_last: bool) -> bool:
        return True

    def names(self, changes: int) -> int:
        """How many of a folder's unsynced changes survive."""
        return changes


class KeepNothing(Keep):
    """Only what was synced."""

    def writes(self, at: int, length: int, is_last: bool) -> list[tuple[int, int]]:
        return []

    def resizes(self, is_last: bool) -> bool:
        return False

    def names(self, changes: int) -> int:
        return 0


@dataclass
class KeepPart(Keep):
    """Everything, but of the last write only the first bytes, or only those from there on."""

    split: int
    is_tail: bool = False

    def writes(self, at: int, length: int, is_last: bool) -> list[tuple[int, int]]:
        if not is_last:
            return [(0, length)]
        return [(self.split, length)] if self.is_tail else [(0, min(self.split, length))]


class KeepLast(Keep):
    """Of the writes only the last one: the disk wrote it first."""

    def writes(self, at: int, length: int, is_last: bool) -> list[tuple[int, int]]:
        return [(0, length)] if is_last else []


@dataclass
class KeepDrawn(Keep):
    """Any sectors of any writes, some of them torn."""

    choices: Random

    def writes(self, at: int, length: int, is_last: bool) -> list[tuple[int, int]]:
        kept, first = [], 0
        while first < length:
            end = min(length, (at + first) // SECTOR * SECTOR + SECTOR - at)
            fate = self.choices.random()
            if fate < 0.5:
                kept.append((first, end))
            elif fate < 0.7:
                kept.append((first, self.choices.randint(first, end)))
            first = end
        return kept

    def resizes(self, is_last: bool) -> bool:
        return self.choices.random() < 0.5

    def names(self, changes: int) -> int:
        return self.choices.randint(0, changes)


@dataclass(slots=True)
class _Write:
    at: int
    data: bytes
    number: int


@dataclass(slots=True)
class _Resize:
    size: int
    number: int


@dataclass(slots=True)
class _Content:
    """seen: what a read gives. synced: what is safe. since: what came between."""

    seen: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    since: list[_Write | _Resize] = field(default_factory=list)


@dataclass(slots=True)
class _Naming:
    """One change of a folder: these names, and what they stand for afterwards (None: nothing)."""

    folder: str
    names: dict[str, _Content | None]


class SimulatedDisk:
    """See `disk.Disk`. power: how many operations that change something succeed; None for all.

    room: how many bytes can still be written, None for any number; it may be set at any time.
    share: what `use` says.
    """

    def __init__(self, *, power: int | None = None, room: int | None = None) -> None:
        self.power = power
        self.room = room
        self.share = 0.0
        self.operations = 0
        self.last_write = 0  # the length of the last operation, if it was a write
        self.sync_fails = False
        self._names: dict[str, _Content] = {}
        self._safe_names: dict[str, _Content] = {}
        self._renamings: list[_Naming] = []
        self._is_locked = False

    # ------------------------------------------------------------ the port

    def lock(self) -> None:
        if self._is_locked:
            raise StoreInUse("The simulated store is in use.")
        self._is_locked = True

    def release(self) -> None:
        self._is_locked = False

    def names(self, folder: str) -> list[str]:
        start = f"{folder}/" if folder else ""
        inside = (path[len(start) :] for path in self._names if path.startswith(start))
        return sorted({path.partition("/")[0] for path in inside})

    def exists(self, path: str) -> bool:
        return path in self._names

    def create(self, path: str, size: int = 0) -> SimulatedFile:
        content = _Content()
        self._rename(path, {path: content})
        file = SimulatedFile(self, content)
        file.resize(size)
        return file

    def open(self, path: str) -> SimulatedFile:
        return SimulatedFile(self, self._find(path))

    def link(self, path: str, name: str) -> None:
        self._rename(name, {name: self._find(path)})

    def rename(self, path: str, name: str) -> None:
        self._rename(name, {name: self._find(path), path: None})

    def remove(self, path: str) -> None:
        self._find(path)
        self._rename(path, {path: None})

    def use(self) -> float:
        return self.share

    def sync_folder(self, folder: str) -> None:
        self.begin()
        self.tick()
        for change in [change for change in self._renamings if change.folder == folder]:
            _apply(change, self._safe_names)
        self._renamings = [change for change in self._renamings if change.folder != folder]

    def _find(self, path: str) -> _Content:
        content = self._names.get(path)
        if content is None:
            raise DiskFailed(f"There is no file {path}.")
        return content

    def _rename(self, path: str, names: dict[str, _Content | None]) -> None:
        self.begin()
        change = _Naming(path.rpartition("/")[0], names)
        self._renamings.append(change)
        _apply(change, self._names)
        self.tick()

    # ------------------------------------------------------------ power and room

    def begin(self) -> int:
        """The number of the operation that begins now; PowerLost when there is no power any more."""
        if self.power is not None and self.operations > self.power:
            raise PowerLost
        return self.operations + 1

    def tick(self, wrote: int = 0) -> None:
        """The operation is done, unless the power failed in it: PowerLost."""
        self.operations += 1
        self.last_write = wrote
        if self.power is not None and self.operations > self.power:
            raise PowerLost

    def take_room(self, wanted: int) -> int:
        """How much of it there is."""
        if self.room is None:
            return wanted
        taken = min(wanted, self.room)
        self.room -= taken
        return taken

    def after_power_loss(self, keep: Keep) -> SimulatedDisk:
        """The disk as the next process finds it: nothing on it is unsynced any more."""
        after = SimulatedDisk()
        names = dict(self._safe_names)
        folders = sorted({change.folder for change in self._renamings})
        for folder in folders:
            changes = [change for change in self._renamings if change.folder == folder]
            for change in changes[: keep.names(len(changes))]:
                _apply(change, names)
        survivors: dict[int, _Content] = {}
        for path, content in sorted(names.items()):
            kept = survivors.get(id(content))
            if kept is None:
                data = bytes(self._surviving(content, keep))
                kept = survivors[id(content)] = _Content(bytearray(data), data)
            after._names[path] = after._safe_names[path] = kept
        return after

    def _surviving(self, content: _Content, keep: Keep) -> bytearray:
        data = bytearray(content.synced)
        for change in content.since:
            is_last = change.number == self.operations
            if isinstance(change, _Resize):
                if keep.resizes(is_last):
                    _resize(data, change.size)
                continue
            for first, end in keep.writes(change.at, len(change.data), is_last):
                _write(data, change.at + first, change.data[first:end])
        return data

    # ------------------------------------------------------------ for tests

    def content(self, path: str) -> bytes:
        """The whole file as it is read."""
        return bytes(self._find(path).seen)

    def put(self, path: str, data: bytes) -> None:
        """A file of that content that was always there."""
        content = self._names.setdefault(path, _Content())
        content.seen, content.synced = bytearray(data), data
        content.since.clear()
        self._safe_names[path] = content

    def paths(self) -> list[str]:
        return sorted(self._names)

    def copy(self) -> SimulatedDisk:
        """The same files, all synced, on a disk of their own."""
        twin = SimulatedDisk()
        for path, content in self._names.items():
            twin.put(path, bytes(content.seen))
        return twin


class SimulatedFile:
    """See `disk.DiskFile`."""

    def __init__(self, disk: SimulatedDisk, content: _Content) -> None:
        self._disk = disk
        self._content = content

    def size(self) -> int:
        return len(self._content.seen)

    def read(self, at: int, length: int) -> bytes:
        return bytes(self._content.seen[at : at + length])

    def next_data(self, at: int) -> int:
        return min(at, self.size())

    def write(self, at: int, data: bytes) -> None:
        number = self._disk.begin()
        taken = self._disk.take_room(len(data))
        part = bytes(data[:taken])
        self._content.since.append(_Write(at, part, number))
        _write(self._content.seen, at, part)
        self._disk.tick(taken)
        if taken < len(data):
            raise DiskFull("The simulated disk is full.")

    def resize(self, size: int) -> None:
        number = self._disk.begin()
        self._content.since.append(_Resize(size, number))
        _resize(self._content.seen, size)
        self._disk.tick()

    def sync(self) -> None:
        self._disk.begin()
        self._disk.tick()
        if self._disk.sync_fails:
            raise DiskFailed("The simulated disk can't sync.")
        self._content.synced = bytes(self._content.seen)
        self._content.since.clear()

    def close(self) -> None:
        pass


def _apply(change: _Naming, names: dict[str, _Content]) -> None:
    for path, content in change.names.items():
        if content is None:
            names.pop(path, None)
        else:
            names[path] = content


def _write(data: bytearray, at: int, part: bytes) -> None:
    if not part:
        return
    if at > len(data):
        data.extend(bytes(at - len(data)))
    data[at : at + len(part)] = part


def _resize(data: bytearray, size: int) -> None:
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))
