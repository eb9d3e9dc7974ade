"""One queue of messages: where each lies in the log, in memory, and RocketMQ's file of the same for others.

The log alone decides what is in a queue: the index is built from it at every start, and the files are written
behind (they may lag, and are rebuilt where they say something else). They are read for one thing only: how far a
queue had come whose messages are all gone from the log.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

from reference_impl.core.broker.log import ConsumeQueue
from reference_impl.protocol.message import StoredMessage
from reference_impl.storage.commit_log import CommitLog
from reference_impl.storage.disk import Disk
from reference_impl.storage.errors import DiskFailed
from reference_impl.storage.layout import CONSUME_QUEUE, ENTRY_BYTES, queue_path, starts

ENTRY = struct.Struct(">qiq")
PRE_BLANK = ENTRY.pack(0, 2**31 - 1, 0)
"""What RocketMQ writes in the place of messages that the queue's first file should hold and does not."""
_NOTHING = (0, 0, 0)
_MAX = 2**63 - 1

T = TypeVar("T")


class DiskQueue(ConsumeQueue):
    """The index of one queue: 28 bytes a message; the messages themselves are read from the log when asked for."""

    __slots__ = ("_log", "places", "sizes", "store_times", "tags", "written")

    def __init__(self, log: CommitLog, min_offset: int = 0) -> None:
        self._log = log  # the columns below take the place of the lists that a queue in memory has
        self.min_offset = min_offset
        self.places = array("q")
        self.sizes = array("i")
        self.tags = array("q")
        self.store_times = array("q")  # ms since the epoch
        self.written = min_offset  # the file holds what is below this offset

    @property
    def max_offset(self) -> int:
        return self.min_offset + len(self.places)

    @property
    def messages(self) -> Sequence[StoredMessage]:  # type: ignore[override]  # views of the log instead of lists
        return _View(self, self.message)

    @property
    def records(self) -> Sequence[bytes]:  # type: ignore[override]
        return _View(self, self.record)

    @property
    def tag_codes(self) -> Sequence[int]:  # type: ignore[override]
        return self.tags

    def add(self, message: StoredMessage, size: int, tag: int) -> None:
        """tag: what its entry says beside the place: the hash of its tags, or when a delayed message is due."""
        self.places.append(message.physical_offset)
        self.sizes.append(size)
        self.tags.append(min(max(tag, -_MAX), _MAX))
        self.store_times.append(min(max(message.store_ms, -_MAX), _MAX))

    def get(self, offset: int) -> StoredMessage | None:
        index = offset - self.min_offset
        return self.message(index) if 0 <= index < len(self.places) else None

    def message(self, index: int) -> StoredMessage:
        """The message at that place of the queue, counted from its first. DiskFailed when it can't be read any more."""
        found = self._log.message(self.places[index], self.sizes[index])
        if found is None:
            raise DiskFailed(f"The message at {self.places[index]} of the log can't be read any more.")
        return found

    def record(self, index: int) -> bytes:
        return self._log.read(self.places[index], self.sizes[index])

    def drop_first(self, count: int) -> None:
        """Forget the first messages."""
        for column in (self.places, self.sizes, self.tags, self.store_times):
            del column[:count]
        self.min_offset += count

    def undo(self, end: int) -> None:
        """Forget the messages at `end` of the log and behind."""
        while self.places and self.places[-1] >= end:
            for column in (self.places, self.sizes, self.tags, self.store_times):
                column.pop()


class _View(Sequence[T]):
    def __init__(self, queue: DiskQueue, read: Callable[[int], T]) -> None:
        self._queue = queue
        self._read = read

    def __len__(self) -> int:
        return len(self._queue.places)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._read(place) for place in range(*index.indices(len(self)))]
        return self._read(index)


# ---------------------------------------------------------------- the files


class QueueFiles:
    """The files of all queues. file_bytes: the size of each, a multiple of an entry's."""

    def __init__(self, disk: Disk, file_bytes: int) -> None:
        self._disk = disk
        self.file_bytes = file_bytes

    def known(self) -> Iterator[tuple[str, int]]:
        """Topic and queue id of every queue that has a folder."""
        for topic in self._disk.names(CONSUME_QUEUE):
            for name in self._disk.names(f"{CONSUME_QUEUE}/{topic}"):
                if name.isascii() and name.isdigit() and len(name) < 10:
                    yield topic, int(name)

    def reached(self, topic: str, queue_id: int, log_start: int) -> int:
        """The offset behind the last entry that names a place below the start of the log; 0 when there is none."""
        found = starts(self._disk.names(f"{CONSUME_QUEUE}/{topic}/{queue_id}"))
        for start in reversed(found):
            data = self._read(queue_path(topic, queue_id, start))
            whole = len(data) - len(data) % ENTRY_BYTES
            last = -1
            for number, (place, size, _) in enumerate(ENTRY.iter_unpack(data[:whole])):
                if size <= 0 or not 0 <= place < log_start:
                    break
                last = number
            if last >= 0:
                return start // ENTRY_BYTES + last + 1
        return 0

    def agree(self, topic: str, queue_id: int, queue: DiskQueue, *, tags_too: bool) -> int | None:
        """The offset up to which the files hold the entries of the index; None when they hold anything else."""
        upto = queue.min_offset
        for start in starts(self._disk.names(f"{CONSUME_QUEUE}/{topic}/{queue_id}")):
            data = self._read(queue_path(topic, queue_id, start))
            whole = len(data) - len(data) % ENTRY_BYTES
            if start % self.file_bytes or data[whole:].strip(b"\0"):
                return None
            for number, entry in enumerate(ENTRY.iter_unpack(data[:whole]), start // ENTRY_BYTES):
                index = number - queue.min_offset
                if index < 0 or entry == _NOTHING:
                    continue
                if number != upto or index >= len(queue.places):
                    return None
                if entry[:2] != (queue.places[index], queue.sizes[index]):
                    return None
                if tags_too and entry[2] != queue.tags[index]:
                    return None
                upto += 1
        return upto

    def rebuild(self, topic: str, queue_id: int, queue: DiskQueue) -> None:
        """Away with the files; `write` makes them again."""
        folder = f"{CONSUME_QUEUE}/{topic}/{queue_id}"
        for name in self._disk.names(folder):
            if self._disk.exists(f"{folder}/{name}"):
                self._disk.remove(f"{folder}/{name}")
        queue.written = queue.min_offset

    def write(self, topic: str, queue_id: int, queue: DiskQueue) -> None:
        """Write the entries that the files do not hold yet. They are not synced: the log can make them again."""
        per_file = self.file_bytes // ENTRY_BYTES
        while queue.written < queue.max_offset:
            number = queue.written // per_file
            path = queue_path(topic, queue_id, number * self.file_bytes)
            stop = min(queue.max_offset, (number + 1) * per_file)
            first, last = queue.written - queue.min_offset, stop - queue.min_offset
            columns = zip(queue.places[first:last], queue.sizes[first:last], queue.tags[first:last], strict=True)
            data = b"".join([ENTRY.pack(*entry) for entry in columns])
            at = queue.written % per_file
            is_new = not self._disk.exists(path)
            file = self._disk.create(path, self.file_bytes) if is_new else self._disk.open(path)
            try:
                if is_new and at:
                    file.write(0, PRE_BLANK * at)
                file.write(at * ENTRY_BYTES, data)
            finally:
                file.close()
            queue.written = stop

    def cut(self, topic: str, queue_id: int, queue: DiskQueue) -> None:
        """Take entries out of the files that the index has no more."""
        per_file = self.file_bytes // ENTRY_BYTES
        while queue.written > queue.max_offset:
            number = (queue.written - 1) // per_file
            first = max(queue.max_offset, number * per_file)
            file = self._disk.open(queue_path(topic, queue_id, number * self.file_bytes))
            try:
                file.write(first % per_file * ENTRY_BYTES, bytes((queue.written - first) * ENTRY_BYTES))
            finally:
                file.close()
            queue.written = first

    def sync(self, topic: str, queue_id: int) -> None:
        folder = f"{CONSUME_QUEUE}/{topic}/{queue_id}"
        for start in starts(self._disk.names(folder))[-2:]:
            file = self._disk.open(queue_path(topic, queue_id, start))
            try:
                file.sync()
            finally:
                file.close()
        self._disk.sync_folder(folder)

    def _read(self, path: str) -> bytes:
        if not self._disk.exists(path):
            return b""
        file = self._disk.open(path)
        try:
            return file.read(0, self.file_bytes)
        finally:
            file.close()
