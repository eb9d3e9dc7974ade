"""The index by key of a store on a disk: blocks in files, which are read when somebody asks for a key.

    keyindex/00000000000000000000    up to `BLOCKS` blocks; named by the place of the log from which they cover it
    a block: magic i32 · entries i32 · from, to: places of the log i64 · first, last store time i64 · CRC i32 · entries

In memory are the newest entries, up to one block, and of each block where it lies and what it covers. A block is not
synced: the log can tell it again. So a start believes blocks whose check sum is right, that follow each other without
a gap, and that cover nothing but what is known to be synced; what comes after them is taken from the log once more.
Where a block can't be written it is kept, and tried again with the next; a start that finds a gap ends it.
"""

from __future__ import annotations

import logging
import struct
import zlib
from collections import deque
from collections.abc import Callable
from functools import partial

from reference_impl.core.broker.key_index import BLOCK, ENTRY_BYTES, Block, KeyIndex, Span
from reference_impl.storage.disk import Disk, DiskFile
from reference_impl.storage.errors import DiskFailed, DiskFull
from reference_impl.storage.layout import KEY_INDEX, segment_name, starts

log = logging.getLogger("inorder.storage")

MAGIC = 0x6B657973  # "keys"
HEAD = struct.Struct(">iiqqqqI")
_CHECKED = struct.Struct(">iqqqq")
BLOCKS = 64
"""So many blocks share a file."""
UNWRITTEN_MAX = 16
"""So many blocks wait for room on the disk; older ones are given up, until the next start."""
_COUNT_MAX = 2**20


class KeyFiles(KeyIndex):
    """start: of the log. known: up to where it is known to be synced. Until `begin` nothing is changed on the disk."""

    def __init__(self, disk: Disk, start: int, known: int, block: int = BLOCK) -> None:
        super().__init__(block)
        self._disk = disk
        self._files: dict[int, DiskFile] = {}  # by the place in its name
        self._lies: dict[
            int, tuple[int, int]
        ] = {}  # by the place where a block begins: its file's name, and where
        self._sizes: dict[int, int] = {}  # of each file, up to the end of its last block
        self._in_file = 0  # blocks in the newest file
        self._waiting: deque[tuple[Span, bytes]] = deque()
        self._is_ready = False
        self._load(start, known)

    def _load(self, start: int, known: int) -> None:
        for name in starts(self._disk.names(KEY_INDEX)):
            file = self._disk.open(f"{KEY_INDEX}/{segment_name(name)}")
            at = number = 0
            while (block := _read_block(file, at, known)) is not None and self._follows(
                block.span, start
            ):
                self.blocks.append(block)
                self._lies[block.span.first] = (name, at)
                at += HEAD.size + block.count * ENTRY_BYTES
                number += 1
                self.covered = block.span.end
            self._files[name], self._sizes[name], self._in_file = file, at, number
            if number < BLOCKS:
                break

    def _follows(self, span: Span, start: int) -> bool:
        return span.first == self.covered if self.blocks else span.first <= start

    def begin(self, start: int, end: int) -> bool:
        """The log goes from `start` to `end`: files that do not fit are removed, what waits is written.

        False where the log is shorter than what was believed: the index is empty then, and to be filled anew.
        """
        fits = self.covered <= end or not self.blocks
        if not fits:
            self.blocks.clear()
            self._lies.clear()
            self._entries, self._span, self.covered = [], None, 0
            self._waiting.clear()
        used = {name for name, _ in self._lies.values()}
        for name in starts(self._disk.names(KEY_INDEX)):
            if name not in used:
                self._remove(name)
        if used:
            self._files[max(used)].resize(self._sizes[max(used)])
        self._in_file = self._in_file if used else 0
        self._is_ready = True
        self.forget_below(start)
        self._write()
        return fits

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    # ------------------------------------------------------------ blocks

    def keep(self, span: Span, data: bytes) -> None:
        super().keep(span, data)
        self._waiting.append((span, data))
        self._write()

    def _write(self) -> None:
        """What waits, as far as the disk has room."""
        try:
            while self._waiting and self._is_ready:
                self._write_block(*self._waiting[0])
                self._waiting.popleft()
        except (DiskFull, DiskFailed) as error:
            log.warning("the index by key was not written: %s", error)
        while self._is_ready and len(self._waiting) > UNWRITTEN_MAX:
            lost, _ = self._waiting.popleft()
            self.blocks = [block for block in self.blocks if block.span is not lost]

    def _write_block(self, span: Span, data: bytes) -> None:
        name = max(self._files, default=-1)
        if name < 0 or self._in_file >= BLOCKS:
            name = span.first
            self._files[name] = self._disk.create(f"{KEY_INDEX}/{segment_name(name)}")
            self._sizes[name] = self._in_file = 0
        file, at = self._files[name], self._sizes[name]
        count = len(data) // ENTRY_BYTES
        file.write(at, _head(span, count, data) + data)
        self._sizes[name] = at + HEAD.size + len(data)
        self._in_file += 1
        self._lies[span.first] = (name, at)
        for block in self.blocks:
            if block.span is span:
                block.read = partial(_read, file, at + HEAD.size)

    def drop(self, block: Block) -> None:
        self._waiting = deque(each for each in self._waiting if each[0] is not block.span)
        name, _ = self._lies.pop(block.span.first, (None, 0))
        if (
            name is not None
            and name != max(self._files)
            and all(name != other for other, _ in self._lies.values())
        ):
            self._remove(name)

    def forget_last(self, block: Block) -> None:
        self._waiting = deque(each for each in self._waiting if each[0] is not block.span)
        if block.span.first in self._lies:
            name, at = self._lies.pop(block.span.first)
            self._sizes[name], self._in_file = at, self._in_file - 1
            self._change(lambda: self._files[name].resize(at))

    def shortened(self, block: Block) -> None:
        if block.span.first in self._lies:
            name, at = self._lies[block.span.first]
            data = block.read(0, block.count * ENTRY_BYTES)
            self._change(lambda: self._files[name].write(at, _head(block.span, block.count, data)))

    def _change(self, work: Callable[[], None]) -> None:
        """Where the disk does not let us, a start may believe a block that covers too much: some keys find nothing."""
        try:
            work()
        except (DiskFull, DiskFailed) as error:
            log.warning("the index by key was not mended: %s", error)

    def _remove(self, name: int) -> None:
        file = self._files.pop(name, None)
        self._sizes.pop(name, None)
        if file is not None:
            file.close()
        try:
            self._disk.remove(f"{KEY_INDEX}/{segment_name(name)}")
        except DiskFailed as error:
            log.warning("an old file of the index by key stays: %s", error)


def _head(span: Span, count: int, data: bytes) -> bytes:
    fields = (count, span.first, span.end, span.first_ms, span.last_ms)
    return HEAD.pack(MAGIC, *fields, zlib.crc32(data, zlib.crc32(_CHECKED.pack(*fields))))


def _read(file: DiskFile, start: int, at: int, length: int) -> bytes:
    return file.read(start + at, length)


def _read_block(file: DiskFile, at: int, known: int) -> Block | None:
    """The block that begins there; None where there is none that can be believed."""
    head = file.read(at, HEAD.size)
    if len(head) < HEAD.size:
        return None
    magic, count, first, end, first_ms, last_ms, crc = HEAD.unpack(head)
    if magic != MAGIC or not 0 < count <= _COUNT_MAX or not 0 <= first < end <= known:
        return None
    data = file.read(at + HEAD.size, count * ENTRY_BYTES)
    span = Span(first, end, first_ms, last_ms)
    if len(data) < count * ENTRY_BYTES or _head(span, count, data)[-4:] != struct.pack(">I", crc):
        return None
    return Block(span, count, partial(_read, file, at + HEAD.size))
