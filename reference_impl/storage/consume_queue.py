"""One queue of messages: where each lies in the log, and RocketMQ's file of the same.

The log alone decides what is in a queue: the index is built from it at every start, and the files are written
behind (they may lag, and are rebuilt where they say something else).
What the files hold need not be in memory: of each queue the newest entries are, the others are read in blocks when
they are asked for, and some blocks are kept. So memory does not grow with the messages, but for 8 bytes a block: the
latest store time in it, by which a time is looked for.
An entry that comes from a file is believed only as far as the log agrees: a record that does not say itself that it
lies there, and has that size, is not given to anybody.
"""

from __future__ import annotations

import struct
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

from reference_impl.core.broker.log import SCAN_MAX, ConsumeQueue
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
BLOCK = 256
"""So many entries of a queue are read at once, and at least as many of its newest stay in memory."""
_BLOCKS_KEPT = 512

T = TypeVar("T")
Entry = tuple[int, int, int]
"""Place in the log, size, and tag code (of a delayed message: when it is due)."""


class DiskQueue(ConsumeQueue):
    """The index of one queue; the messages themselves are read from the log when asked for.

    Three offsets cut it: what is below `min_offset` is gone, what is below `in_memory` lies in the files alone, what
    is below `written` lies there too.
    """

    __slots__ = (
        "_files",
        "_first_block",
        "_key",
        "_latest",
        "_log",
        "_places",
        "_sizes",
        "_tags",
        "_times",
        "in_memory",
        "written",
    )

    def __init__(
        self, log: CommitLog, files: QueueFiles, topic: str, queue_id: int, min_offset: int = 0
    ) -> None:
        self._log = log  # the columns below take the place of the lists that a queue in memory has
        self._files = files
        self._key = (topic, queue_id)
        self.min_offset = min_offset
        self.in_memory = min_offset
        self.written = min_offset
        self._places = array("q")
        self._sizes = array("i")
        self._tags = array("q")
        self._times = array("q")  # ms since the epoch
        self._latest = array("q")  # store time in each block that is not in memory
        self._first_block = min_offset // files.block  # the number of the first of them

    @property
    def max_offset(self) -> int:
        return self.in_memory + len(self._places)

    @property
    def messages(self) -> Sequence[StoredMessage]:  # type: ignore[override]  # views of the log instead of lists
        return _View(self, self.message)

    @property
    def records(self) -> Sequence[bytes]:  # type: ignore[override]
        return _View(self, self.record)

    @property
    def tag_codes(self) -> Sequence[int]:  # type: ignore[override]
        return _View(self, lambda index: self.entry(self.min_offset + index)[2])

    @property
    def places(self) -> Sequence[int]:
        return _View(self, lambda index: self.entry(self.min_offset + index)[0])

    def add(self, message: StoredMessage, size: int, tag: int) -> None:
        """tag: what its entry says beside the place: the hash of its tags, or when a delayed message is due."""
        self._places.append(message.physical_offset)
        self._sizes.append(size)
        self._tags.append(min(max(tag, -_MAX), _MAX))
        self._times.append(min(max(message.store_ms, -_MAX), _MAX))

    # ------------------------------------------------------------ reading

    def entry(self, offset: int) -> Entry:
        """That of a message that the queue has."""
        index = offset - self.in_memory
        if index >= 0:
            return self._places[index], self._sizes[index], self._tags[index]
        return self._files.entries(*self._key, offset, offset + 1)[0]

    def entries(self, first: int, end: int) -> list[Entry]:
        """From the offset `first` up to, but not with, `end`; the queue has all of them."""
        middle = min(max(first, self.in_memory), end)
        low, high = middle - self.in_memory, end - self.in_memory
        found = self._files.entries(*self._key, first, middle) if first < middle else []
        if middle < end:
            found.extend(
                zip(
                    self._places[low:high], self._sizes[low:high], self._tags[low:high], strict=True
                )
            )
        return found

    def get(self, offset: int) -> StoredMessage | None:
        return (
            self.message(offset - self.min_offset)
            if self.min_offset <= offset < self.max_offset
            else None
        )

    def message(self, index: int) -> StoredMessage:
        """The message at that place of the queue, counted from its first. DiskFailed when it can't be read any more."""
        place, size, _ = self.entry(self.min_offset + index)
        found = self._log.message(place, size)
        if found is None:
            raise DiskFailed(f"The message at {place} of the log can't be read any more.")
        return found

    def record(self, index: int) -> bytes:
        return self._log.gather([self.entry(self.min_offset + index)])

    def take(
        self, offset: int, count_max: int, bytes_max: int, wanted: Callable[[int], bool] | None
    ) -> tuple[int, int, bytes]:
        stop = min(self.max_offset, offset + SCAN_MAX)
        chosen: list[Entry] = []
        room = bytes_max
        while offset < stop and len(chosen) < count_max:
            for entry in self.entries(offset, min(stop, offset + count_max - len(chosen))):
                if wanted is None or wanted(entry[2]):
                    if chosen and entry[1] > room:
                        return offset, len(chosen), self._log.gather(chosen)
                    room -= entry[1]
                    chosen.append(entry)
                offset += 1
        return offset, len(chosen), self._log.gather(chosen)

    def first_stored_at(self, store_ms: int) -> int:
        """The offset of the first message that was stored at that time or later; the end where there is none."""
        for number, latest in enumerate(self._latest, self._first_block):
            if latest >= store_ms:
                first = max(number * self._files.block, self.min_offset)
                end = min((number + 1) * self._files.block, self.in_memory)
                for offset, (place, _, _) in enumerate(self.entries(first, end), first):
                    if self._log.store_ms(place) >= store_ms:
                        return offset
        later = (index for index, time in enumerate(self._times) if time >= store_ms)
        return self.in_memory + next(later, len(self._times))

    # ------------------------------------------------------------ less of it

    def drop_first(self, count: int) -> None:
        """Forget the first messages."""
        self.min_offset += count
        gone = max(0, self.min_offset - self.in_memory)
        for column in (self._places, self._sizes, self._tags, self._times):
            del column[:gone]
        self.in_memory = max(self.in_memory, self.min_offset)
        blocks = self.min_offset // self._files.block - self._first_block
        del self._latest[:blocks]
        self._first_block += blocks

    def undo(self, end: int) -> None:
        """Forget the messages at `end` of the log and behind: they were added in this very step, so are in memory."""
        while self._places and self._places[-1] >= end:
            for column in (self._places, self._sizes, self._tags, self._times):
                column.pop()

    def leave_to_files(self) -> None:
        """Let go of whole blocks that lie in the files, all but the newest one."""
        block = self._files.block
        upto = min(self.written, self.max_offset - block) // block * block
        while self.in_memory < upto:
            count = block - self.in_memory % block
            self._latest.append(max(self._times[:count]))
            for column in (self._places, self._sizes, self._tags, self._times):
                del column[:count]
            self.in_memory += count

    def take_from_files(self) -> None:
        """The reverse, for files that are to be made again."""
        entries = self.entries(self.min_offset, self.in_memory)
        places, sizes, tags = zip(*entries, strict=True) if entries else ((), (), ())
        self._places = array("q", places) + self._places
        self._sizes = array("i", sizes) + self._sizes
        self._tags = array("q", tags) + self._tags
        self._times = array("q", [self._log.store_ms(place) for place in places]) + self._times
        self.in_memory = self.min_offset
        self._first_block = self.min_offset // self._files.block
        del self._latest[:]


class _View(Sequence[T]):
    def __init__(self, queue: DiskQueue, read: Callable[[int], T]) -> None:
        self._queue = queue
        self._read = read

    def __len__(self) -> int:
        return self._queue.max_offset - self._queue.min_offset

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._read(place) for place in range(*index.indices(len(self)))]
        return self._read(range(len(self))[index])


# ---------------------------------------------------------------- the files


class QueueFiles:
    """The files of all queues. file_bytes: the size of each, a multiple of an entry's. block: see BLOCK."""

    def __init__(self, disk: Disk, file_bytes: int, block: int = BLOCK) -> None:
        self._disk = disk
        self.file_bytes = file_bytes
        self.block = block
        self._blocks: OrderedDict[tuple[str, int, int], bytes] = (
            OrderedDict()
        )  # those that were read last

    def entries(self, topic: str, queue_id: int, first: int, end: int) -> list[Entry]:
        """Those of the offsets from `first` up to, but not with, `end`, which were written.

        Raises DiskFailed when they are not there any more.
        """
        found: list[Entry] = []
        while first < end:
            number, at = divmod(first, self.block)
            count = min(self.block - at, end - first)
            data = self._block(topic, queue_id, number)[
                at * ENTRY_BYTES : (at + count) * ENTRY_BYTES
            ]
            if len(data) < count * ENTRY_BYTES:
                raise DiskFailed(
                    f"The files of the consume queue {topic}/{queue_id} end before {first + count}."
                )
            found += ENTRY.iter_unpack(data)
            first += count
        return found

    def _block(self, topic: str, queue_id: int, number: int) -> bytes:
        key = (topic, queue_id, number)
        data = self._blocks.pop(key, None)
        if data is None:
            data = self._read_block(topic, queue_id, number)
            while len(self._blocks) >= _BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        self._blocks[key] = data
        return data

    def _read_block(self, topic: str, queue_id: int, number: int) -> bytes:
        """A block may lie in several files."""
        at, end = number * self.block * ENTRY_BYTES, (number + 1) * self.block * ENTRY_BYTES
        data = b""
        while at < end:
            start = at - at % self.file_bytes
            part = min(end, start + self.file_bytes) - at
            path = queue_path(topic, queue_id, start)
            if self._disk.exists(path):
                file = self._disk.open(path)
                try:
                    data += file.read(at - start, part)
                finally:
                    file.close()
            else:
                data += bytes(part)
            at += part
        return data

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

    def follow(self, topic: str, queue_id: int, queue: DiskQueue) -> None:
        """While the index is being built: what the files hold of it, block by block, need not stay in memory."""
        while (
            end := (queue.written // self.block + 1) * self.block
        ) + self.block <= queue.max_offset:
            data = self._read_block(topic, queue_id, queue.written // self.block)
            begun = queue.written % self.block * ENTRY_BYTES
            if data[begun:] != _packed(queue, queue.written, end):
                return
            queue.written = end
        queue.leave_to_files()

    def agree(self, topic: str, queue_id: int, queue: DiskQueue, *, tags_too: bool) -> int | None:
        """The offset up to which the files hold the entries of the index; None when they hold anything else.

        What was `written` before is known to be there.
        """
        upto = queue.written
        for start in starts(self._disk.names(f"{CONSUME_QUEUE}/{topic}/{queue_id}")):
            data = self._read(queue_path(topic, queue_id, start))
            whole = len(data) - len(data) % ENTRY_BYTES
            if start % self.file_bytes or data[whole:].strip(b"\0"):
                return None
            for number, entry in enumerate(ENTRY.iter_unpack(data[:whole]), start // ENTRY_BYTES):
                if number < queue.written or entry == _NOTHING:
                    continue
                if number != upto or number >= queue.max_offset:
                    return None
                if entry[: 3 if tags_too else 2] != queue.entry(number)[: 3 if tags_too else 2]:
                    return None
                upto += 1
        return upto

    def rebuild(self, topic: str, queue_id: int, queue: DiskQueue) -> None:
        """Away with the files; `write` makes them again."""
        queue.take_from_files()
        folder = f"{CONSUME_QUEUE}/{topic}/{queue_id}"
        for name in self._disk.names(folder):
            if self._disk.exists(f"{folder}/{name}"):
                self._disk.remove(f"{folder}/{name}")
        self._blocks.clear()
        queue.written = queue.min_offset

    def write(self, topic: str, queue_id: int, queue: DiskQueue) -> None:
        """Write the entries that the files do not hold yet. They are not synced: the log can make them again."""
        per_file = self.file_bytes // ENTRY_BYTES
        queue.written = max(queue.written, queue.min_offset)
        while queue.written < queue.max_offset:
            number = queue.written // per_file
            path = queue_path(topic, queue_id, number * self.file_bytes)
            stop = min(queue.max_offset, (number + 1) * per_file)
            data = _packed(queue, queue.written, stop)
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
        queue.leave_to_files()

    def prune(self, topic: str, queue_id: int, queue: DiskQueue) -> None:
        """Remove the files of which every entry names a message that is gone; the last one stays."""
        found = starts(self._disk.names(f"{CONSUME_QUEUE}/{topic}/{queue_id}"))
        for start in found[:-1]:
            if (start + self.file_bytes) // ENTRY_BYTES <= queue.min_offset:
                self._disk.remove(queue_path(topic, queue_id, start))

    def cut(self, topic: str, queue_id: int, queue: DiskQueue) -> None:
        """Take entries out of the files that the index has no more."""
        per_file = self.file_bytes // ENTRY_BYTES
        while queue.written > queue.max_offset:
            number = (queue.written - 1) // per_file
            first = max(queue.max_offset, number * per_file)
            file = self._disk.open(queue_path(topic, queue_id, number * self.file_bytes))
            try:
                file.write(
                    first % per_file * ENTRY_BYTES, bytes((queue.written - first) * ENTRY_BYTES)
                )
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


def _packed(queue: DiskQueue, first: int, end: int) -> bytes:
    return b"".join([ENTRY.pack(*entry) for entry in queue.entries(first, end)])
