"""By which key which message can be asked for: each key's hash beside the place of its message in the log.

Entries come in the order of the log. The newest are a list; `BLOCK` of them become a block, sorted by hash, in which
a key is found by halving. Newer blocks are looked through before older ones, and those of other times not at all.
What is found is a place where the message may lie, not more: hashes may be equal, and the message may be gone. Who
asks looks at the message.

An entry takes 12 bytes: hash i32, place i64, both without sign.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from reference_impl.protocol.message import PROPERTY_KEYS, StoredMessage

BLOCK = 8_192
ENTRY_BYTES = 12
HASH_BYTES = 4
_PLACE = (1 << 64) - 1
_READ = 64
"""So many entries of one hash are read at a time."""


def keys_of(message: StoredMessage) -> set[str]:
    """All keys by which the message can be asked for: its unique key, and each word of its KEYS."""
    keys = set(message.properties.get(PROPERTY_KEYS, "").split())
    if message.message_id:
        keys.add(message.message_id)
    return keys


def hash_of(topic: str, key: str) -> int:
    return zlib.crc32(f"{topic}#{key}".encode(errors="surrogatepass"))


@dataclass(slots=True)
class Span:
    """Of which part of the log: messages from the place `first` on and below `end`; store times of both ends, in ms."""

    first: int
    end: int
    first_ms: int
    last_ms: int


@dataclass(slots=True)
class Block:
    """Sorted entries. read: bytes of them, from a place on."""

    span: Span
    count: int
    read: Callable[[int, int], bytes] = field(repr=False)

    def places(self, code: int) -> list[int]:
        """Where messages lie that may have a key of that hash, the newest first."""
        wanted = code.to_bytes(HASH_BYTES, "big")
        at = bisect_left(
            range(self.count),
            wanted,
            key=lambda number: self.read(number * ENTRY_BYTES, HASH_BYTES),
        )
        found: list[int] = []
        while at < self.count:
            data = self.read(at * ENTRY_BYTES, _READ * ENTRY_BYTES)
            for start in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
                if data[start : start + HASH_BYTES] != wanted:
                    return found[::-1]
                found.append(int.from_bytes(data[start + HASH_BYTES : start + ENTRY_BYTES], "big"))
            if len(data) < ENTRY_BYTES:
                break  # a file that lost its end
            at += len(data) // ENTRY_BYTES
        return found[::-1]


class KeyIndex:
    """The index of one log, in memory. block: see the module."""

    def __init__(self, block: int = BLOCK) -> None:
        self.block = block
        self.blocks: list[Block] = []
        self.covered = 0  # every message below this place of the log is in a block, or need not be
        self._entries: list[int] = []  # hash and place as one number
        self._span: Span | None = None

    def add(self, message: StoredMessage) -> None:
        """The next message of the log."""
        place, time = message.physical_offset, message.store_ms
        self._entries += [hash_of(message.topic, key) << 64 | place for key in keys_of(message)]
        if self._span is None:
            self._span = Span(self.covered, place + 1, time, time)
        else:
            span = self._span
            span.end = place + 1
            span.first_ms, span.last_ms = min(span.first_ms, time), max(span.last_ms, time)
        if len(self._entries) >= self.block:
            self._seal(self._span)

    def _seal(self, span: Span) -> None:
        data = b"".join(entry.to_bytes(ENTRY_BYTES, "big") for entry in sorted(self._entries))
        self._entries, self._span, self.covered = [], None, span.end
        self.keep(span, data)

    def keep(self, span: Span, data: bytes) -> None:
        """A block is full."""
        self.blocks.append(
            Block(span, len(data) // ENTRY_BYTES, lambda at, length: data[at : at + length])
        )

    def undo(self, end: int) -> None:
        """The messages from that place on are taken back. Those in a block with others stay, and find nothing."""
        while self._entries and self._entries[-1] & _PLACE >= end:
            self._entries.pop()
        while self.blocks and self.blocks[-1].span.first >= end:
            self.forget_last(self.blocks.pop())
        if self.blocks and self.blocks[-1].span.end > end:
            self.blocks[-1].span.end = end
            self.shortened(self.blocks[-1])
        self.covered = min(self.covered, end)
        if self._span is not None:
            self._span.first = min(self._span.first, self.covered)

    def forget_last(self, block: Block) -> None:
        """All of the newest block was taken back."""

    def shortened(self, block: Block) -> None:
        """The newest block covers less than it did."""

    def forget_below(self, place: int) -> None:
        """The log begins there now."""
        while self.blocks and self.blocks[0].span.end <= place:
            self.drop(self.blocks.pop(0))

    def drop(self, block: Block) -> None:
        """A block is needed no more."""

    def find(self, topic: str, key: str, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Where messages of that topic and key may lie that were stored in the time, the newest first."""
        code = hash_of(topic, key)
        for entry in reversed(self._entries):
            if entry >> 64 == code:
                yield entry & _PLACE
        for block in reversed(self.blocks):
            if block.span.first_ms <= end_ms and begin_ms <= block.span.last_ms:
                yield from block.places(code)
