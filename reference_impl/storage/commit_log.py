"""The append log: segments of one size, one record behind the other, no record across two segments.

A record that does not fit goes into the next segment, and a blank fills the rest of the present one. A new segment
has its full size from the start (the room is taken when it is written), as RocketMQ wants it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.message import SYS_BORN_HOST_V6, StoredMessage, decode_all
from reference_impl.storage.disk import Disk, DiskFile
from reference_impl.storage.errors import DiskFailed, DiskFull
from reference_impl.storage.layout import (
    BLANK_BYTES,
    BLANK_MAGIC,
    COMMIT_LOG,
    RECORD_BYTES_MAX,
    segment_name,
    segment_path,
    starts,
)
from reference_impl.storage.records import fault_of, without_sum

_HEAD = struct.Struct(">ii")
_I64 = struct.Struct(">q")
_PLACE = struct.Struct(">i24xq")  # of a record: its size, its place
_STORED = struct.Struct(
    ">36xi8x8xq"
)  # its flags, and when it was stored, behind a born host of IPv4
_V6_MORE = 12
_CHUNK = 1024 * 1024
_GAP = (
    8 * 1024
)  # so much that nobody asked for is read with the rest sooner than the log is read once more


@dataclass(frozen=True, slots=True)
class Fault:
    """Where the log stops being one. at: offset in the log. why: what is there instead of a record."""

    at: int
    why: str


class CommitLog:
    """start, end: of the log, in bytes. Everything below `synced` outlives a crash of the machine."""

    def __init__(self, disk: Disk, segment_bytes: int) -> None:
        self._disk = disk
        self.segment_bytes = segment_bytes
        self._segments: dict[int, DiskFile] = {}
        self._naming = 1  # changes of the folder, one of them perhaps by a process before us
        self._naming_safe = 0  # how many of them are safe
        for start in starts(disk.names(COMMIT_LOG)):
            self._segments[start] = disk.open(segment_path(start))
        self.start = min(self._segments, default=0)
        self.end = self.start
        self.synced = self.start

    # ------------------------------------------------------------ writing

    def append(self, encode: Callable[[int], bytes]) -> tuple[int, bytes]:
        """Write the record behind the last one; its place and its bytes.

        encode: the record for a place. Raises ProtocolError for one that fits into no segment, DiskFull and
        DiskFailed; then the log is as it was before.
        """
        before = self.end
        record = encode(before)
        if len(record) + BLANK_BYTES > min(self.segment_bytes, RECORD_BYTES_MAX):
            raise ProtocolError(
                f"A record of {len(record)} bytes fits into no segment of {self.segment_bytes}."
            )
        try:
            room = self._room()
            if len(record) + BLANK_BYTES > room:
                if room:
                    self._write(_HEAD.pack(room, BLANK_MAGIC))
                    self.end = before + room
                record = encode(self.end)
            place = self.end
            self._write(record)
            self.end = place + len(record)
        except BaseException:
            self.undo(before)
            raise
        return place, record

    def undo(self, end: int) -> None:
        """Forget what was written behind `end`, as well as the disk lets us: zeros are there again."""
        self.end = end
        self.synced = min(self.synced, end)
        with suppress(
            DiskFailed, DiskFull
        ):  # what stays lies behind the end: covered by and by, or cut at a recovery
            self.cut(end)

    def cut(self, end: int) -> list[str]:
        """Make zeros of everything from `end` on; the names of segments that are gone for it."""
        gone = []
        for start in sorted(self._segments, reverse=True):
            if start >= end and start > self.start:
                self._segments.pop(start).close()
                self._disk.remove(segment_path(start))
                self._naming += 1
                gone.append(segment_name(start))
            elif start + self.segment_bytes > end:
                self._segments[start].resize(max(0, end - start))
                self._segments[start].resize(self.segment_bytes)
        return gone

    def segments(self) -> list[int]:
        """Where each segment starts, ascending."""
        return sorted(self._segments)

    def segment_of(self, place: int) -> int:
        """Where the segment starts that has, or had, that place of the log."""
        return place - (place - self.start) % self.segment_bytes

    def remove_oldest(self) -> None:
        """The oldest segment is gone, and the log starts with the next one. Raises DiskFailed; then nothing changed."""
        start = min(self._segments)
        self._disk.remove(segment_path(start))
        self._naming += 1
        self._segments.pop(start).close()
        self.start = min(self._segments)

    def _room(self) -> int:
        """How many bytes are left in the segment that the end lies in; 0 when it is yet to be made."""
        if not self._segments:
            return 0
        return max(0, max(self._segments) + self.segment_bytes - self.end)

    def _write(self, data: bytes) -> None:
        if self._room() == 0:
            path = segment_path(self.end)
            self._naming += 1
            self._segments[self.end] = self._disk.create(path, self.segment_bytes)
        start = max(self._segments)
        self._segments[start].write(self.end - start, data)

    # ------------------------------------------------------------ safe

    def begin_sync(self) -> Callable[[], int]:
        """The work that makes everything up to here safe, for any thread: it blocks, and returns how far it came.

        The work raises DiskFull and DiskFailed. `synced` is the caller's to move, when it is done.
        """
        end, naming = self.end, self._naming
        files = [
            file
            for start, file in sorted(self._segments.items())
            if start + self.segment_bytes > self.synced
        ]

        def work() -> int:
            for file in files:
                file.sync()
            if naming > self._naming_safe:
                self._disk.sync_folder(COMMIT_LOG)
                self._naming_safe = max(self._naming_safe, naming)
            return end

        return work

    def sync(self) -> None:
        """Everything up to here is safe when this returns."""
        self.synced = max(self.synced, self.begin_sync()())

    def leftover(self) -> int:
        """How many bytes lie behind the end, up to the last one that is no zero."""
        last = self.end
        for start, file in sorted(self._segments.items()):
            for at, piece in _pieces(file, max(0, self.end - start)):
                used = len(piece.rstrip(b"\0"))
                last = max(last, start + at + used) if used else last
        return last - self.end

    def close(self) -> None:
        for file in self._segments.values():
            file.close()
        self._segments.clear()

    # ------------------------------------------------------------ reading

    def read(self, place: int, size: int) -> bytes:
        """The bytes there, none where the log has no such place."""
        start = self._segment_of(place)
        if start is None or size <= 0 or place + size > self.end:
            return b""
        return self._segments[start].read(place - start, size)

    def gather(self, spans: Sequence[tuple[int, int, int]]) -> bytes:
        """The records at these places, one behind the other. spans: place and size of each, then anything.

        Records that lie together are read together. Raises DiskFailed where there is none of that size.
        """
        pieces: list[bytes] = []
        number = 0
        while number < len(spans):
            first, size, _ = spans[number]
            segment, end, stop = self._segment_of(first), first + size, number + 1
            is_dense = True
            for place, size, _ in spans[stop:]:
                near = 0 <= place - end <= _GAP and place + size - first <= _CHUNK
                if not near or self._segment_of(place) != segment:
                    break
                is_dense &= place == end
                end, stop = place + size, stop + 1
            data = self.read(first, end - first)
            for place, size, _ in spans[number:stop]:
                at = place - first
                if (
                    len(data) < at + size
                    or size < _PLACE.size
                    or _PLACE.unpack_from(data, at) != (size, place)
                ):
                    raise DiskFailed(f"The message at {place} of the log can't be read any more.")
                if not is_dense:
                    pieces.append(data[at : at + size])
            if is_dense:
                pieces.append(data)
            number = stop
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def store_ms(self, place: int) -> int:
        """When the message whose record begins there was stored. Raises DiskFailed when there is none."""
        head = self.read(place, _STORED.size + _V6_MORE)
        if len(head) < _STORED.size + _V6_MORE or _PLACE.unpack_from(head)[1] != place:
            raise DiskFailed(f"The message at {place} of the log can't be read any more.")
        flags, time = _STORED.unpack_from(head)
        return int(
            _I64.unpack_from(head, _STORED.size - _I64.size + _V6_MORE)[0]
            if flags & SYS_BORN_HOST_V6
            else time
        )

    def message(self, place: int, size: int | None = None) -> StoredMessage | None:
        """The message whose record begins there, None when none does."""
        if size is None:
            head = self.read(place, _HEAD.size)
            size = _HEAD.unpack(head)[0] if len(head) == _HEAD.size else 0
        if not 0 < size <= RECORD_BYTES_MAX:
            return None
        try:
            found = decode_all(self.read(place, size), inflate=False)
        except ProtocolError:
            return None
        if not found or found[0].physical_offset != place:
            return None
        return replace(found[0], properties=without_sum(found[0].properties))

    def _segment_of(self, place: int) -> int | None:
        if place < self.start:
            return None
        start = self.segment_of(place)
        return start if start in self._segments else None

    # ------------------------------------------------------------ after a start

    def scan(
        self, faults: list[Fault], may_be_torn: Callable[[int], bool]
    ) -> Iterator[tuple[StoredMessage, int]]:
        """All messages from the start on with the sizes of their records, up to the first thing that is none.

        `end` moves behind a message when the next one is asked for: who stops asking leaves the end before the
        message that was given last. Where the log does not simply stop (zeros), the fault is added to `faults`.
        may_be_torn: can the record at that place be one that a crash cut?
        """
        while True:
            file = self._segments.get(self.end)
            if file is None:
                later = [start for start in self._segments if start > self.end]
                if later:
                    faults.append(
                        Fault(self.end, f"no segment, though there is {segment_name(min(later))}")
                    )
                return
            end = self.end + self.segment_bytes
            for found in self._scan_segment(self.end, file, faults, may_be_torn):
                yield found
                self.end = found[0].physical_offset + found[1]
            if faults or self.end != end:
                return

    def _scan_segment(
        self, start: int, file: DiskFile, faults: list[Fault], may_be_torn: Callable[[int], bool]
    ) -> Iterator[tuple[StoredMessage, int]]:
        ahead = _Ahead(file)
        at = 0
        if file.size() > self.segment_bytes:
            faults.append(
                Fault(start, f"a segment of {file.size()} bytes instead of {self.segment_bytes}")
            )
            return
        while at < self.segment_bytes:
            head = ahead.read(at, _HEAD.size)
            size, magic = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
            left = self.segment_bytes - at
            if size == left and magic == BLANK_MAGIC:
                self.end = start + self.segment_bytes
                return
            if size == 0 and magic == 0:
                self._stops(start, at, file, faults)
                return
            if not 0 < size <= min(left, RECORD_BYTES_MAX):
                faults.append(Fault(start + at, f"a record that claims {size} bytes"))
                return
            record = ahead.read(at, size)
            try:
                (message,) = decode_all(record, inflate=False)
            except ProtocolError as error:
                faults.append(Fault(start + at, f"no record ({error})"))
                return
            wrong = fault_of(record, message, may_be_torn=may_be_torn(start + at))
            if wrong is not None:
                faults.append(Fault(start + at, wrong))
                return
            if message.physical_offset != start + at:
                faults.append(
                    Fault(start + at, f"a record that belongs to {message.physical_offset}")
                )
                return
            yield message, size
            at += size
        faults.append(Fault(start + at, "a segment without the blank at its end"))

    def _stops(self, start: int, at: int, file: DiskFile, faults: list[Fault]) -> None:
        """Zeros follow: the log ends here, if there is nothing behind them."""
        if any(later > start for later in self._segments):
            faults.append(Fault(start + at, "zeros, though there are later segments"))
        elif any(piece.count(0) != len(piece) for _, piece in _pieces(file, at)):
            faults.append(Fault(start + at, "zeros, and something behind them"))


class _Ahead:
    """Reads a file in order, more than is asked for at a time."""

    def __init__(self, file: DiskFile) -> None:
        self._file = file
        self._at = 0
        self._data = b""

    def read(self, at: int, length: int) -> bytes:
        """The bytes there; fewer where the file ends."""
        place = at - self._at
        if place < 0 or place + length > len(self._data):
            self._at, self._data = at, self._file.read(at, max(length, _CHUNK))
            place = 0
        return self._data[place : place + length]


def _pieces(file: DiskFile, at: int) -> Iterator[tuple[int, bytes]]:
    """What lies in the file from there on, in pieces; holes are left out."""
    size = file.size()
    while (at := file.next_data(at)) < size and (piece := file.read(at, _CHUNK)):
        yield at, piece
        at += len(piece)
