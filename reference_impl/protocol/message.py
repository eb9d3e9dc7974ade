"""A stored message: the record of the commit log, and the body of a pull's answer.

Layout, big-endian (source: `MessageDecoder` of apache/rocketmq; checked against 4.9.7 and 5.4.0 brokers):

    total i32 · magic i32 · body CRC i32 · queue id i32 · flag i32 · queue offset i64 · physical offset i64 ·
    sys flag i32 · born ms i64 · born host (4 or 16 bytes) + port i32 · store ms i64 · store host + port i32 ·
    reconsume times i32 · prepared transaction offset i64 · body length i32 + body ·
    topic length i8 (second version: i16) + topic · properties length i16 + properties

The CRC is `crc32(body) & 0x7fffffff`, over the bytes as stored (that is, compressed ones when compressed).
Properties are `name 0x01 value 0x02` repeated; 4.9.7 leaves the last 0x02 out, 5.4.0 and we write it.
"""

from __future__ import annotations

import ipaddress
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from reference_impl.protocol.command import NO_EXT
from reference_impl.protocol.errors import ProtocolError

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477  # two bytes for the topic's length

NAME_END = "\x01"
PROPERTY_END = "\x02"

PROPERTY_UNIQ_KEY = "UNIQ_KEY"
PROPERTY_ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
PROPERTY_SHARDING_KEY = "__SHARDINGKEY"
PROPERTY_TAGS = "TAGS"
PROPERTY_KEYS = "KEYS"
PROPERTY_DELAY = "DELAY"
DELAY_DIGITS_MAX = 9
PROPERTY_WAIT = "WAIT"
PROPERTY_RETRY_TOPIC = "RETRY_TOPIC"
PROPERTY_REAL_TOPIC = "REAL_TOPIC"
PROPERTY_REAL_QUEUE_ID = "REAL_QID"
PROPERTY_RECONSUME_TIME = "RECONSUME_TIME"
PROPERTY_MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
PROPERTY_TRANSACTION_PREPARED = "TRAN_MSG"
PROPERTY_TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
PROPERTY_PRODUCER_GROUP = "PGROUP"
PROPERTY_MIN_OFFSET = "MIN_OFFSET"
PROPERTY_MAX_OFFSET = "MAX_OFFSET"
PROPERTY_BUYER_ID = "BUYER_ID"
PROPERTY_CHECKED = (
    "CHECKED"  # ours: what the producer answers when it is asked about the transaction
)
PROPERTY_KEY_SEQ = "KEY_SEQ"  # ours: the message's number among those of its sharding key

SYS_COMPRESSED = 0x1
SYS_MULTI_TAGS = 0x2
SYS_PREPARED = 0x4
SYS_COMMIT = 0x8
SYS_ROLLBACK = 0xC
SYS_BORN_HOST_V6 = 0x10
SYS_STORE_HOST_V6 = 0x20
SYS_COMPRESSION_TYPE = 0x700  # 0 and 3: zlib, 1: LZ4, 2: Zstandard
_ZLIB_TYPES = frozenset({0x000, 0x300})

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_PROPERTIES_BYTES = 32767
MAX_TOPIC_BYTES = 127
MAX_INFLATED_BYTES = 64 * 1024 * 1024
"""A compressed body that grows beyond this is an attack or a mistake, not a message."""
MAX_INFLATED_BYTES_IN_ALL = 256 * 1024 * 1024
"""To how much all compressed bodies of one answer may grow together."""

_FIXED = struct.Struct(">iiiiiqqiq")  # up to and with born ms
_TAIL = struct.Struct(">iqi")  # reconsume times, prepared offset, body length
_I16 = struct.Struct(">h")
_U16 = struct.Struct(">H")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_PLAIN = struct.Struct(">iiiiiqqiq4siq4siiqi")  # everything before the body, both hosts IPv4
_BATCH_HEAD = struct.Struct(">iiiii")
_SMALLEST = _PLAIN.size + 1 + 2


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message as a broker keeps it.

    born_host, store_host: `ip:port` (IPv6 as `[ip]:port`). Times in ms since the epoch by the wall clock of
    the producer (born) and the broker (store). body: as handed to a listener; when `sys_flag` has
    SYS_COMPRESSED the bytes are still compressed.
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    body: bytes
    properties: Mapping[str, str] = field(default_factory=lambda: NO_EXT)
    flag: int = 0
    sys_flag: int = 0
    born_ms: int = 0
    born_host: str = "0.0.0.0:0"
    store_ms: int = 0
    store_host: str = "0.0.0.0:0"
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    @property
    def message_id(self) -> str | None:
        """The producer's own id (UNIQ_KEY), the same in every copy of the message; None when it set none."""
        return self.properties.get(PROPERTY_UNIQ_KEY)

    @property
    def origin_id(self) -> str | None:
        """Of a copy in a retry or dead-letter topic: the id of the message that it stands for."""
        return self.properties.get(PROPERTY_ORIGIN_MESSAGE_ID)

    @property
    def source_id(self) -> str | None:
        """Of a copy: the producer's own id of that message, whether the copy names it so or by its place in a log."""
        origin, own = self.origin_id, self.message_id
        if origin is None or own is None:
            return origin
        try:
            parse_offset_message_id(origin)
        except ProtocolError:
            return origin
        return own

    @property
    def sharding_key(self) -> str | None:
        return self.properties.get(PROPERTY_SHARDING_KEY)

    @property
    def tags(self) -> str | None:
        return self.properties.get(PROPERTY_TAGS)

    @property
    def delay_level(self) -> int | None:
        """The level that the message says it was sent with, 0 when it says none; None for what is no number."""
        text = self.properties.get(PROPERTY_DELAY, "0")
        digits = text.removeprefix("-")
        return (
            int(text)
            if digits.isascii() and digits.isdecimal() and len(digits) <= DELAY_DIGITS_MAX
            else None
        )

    @property
    def offset_id(self) -> str:
        """The broker's id of this copy: its store host and place in the log, 32 (IPv6: 56) hex digits."""
        return offset_message_id(self.store_host, self.physical_offset)


# ---------------------------------------------------------------- properties


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that the sender's application set. The protocol's names, old and new, are in capitals or begin with `_`.

    An application's own in capitals are not told apart from them, and left out.
    """
    return {
        name: value
        for name, value in properties.items()
        if not name.isupper() and not name.startswith("_")
    }


def pack_properties(properties: Mapping[str, str]) -> str:
    """Write properties as the protocol's one string, in the mapping's order.

    Raises ProtocolError for a separator inside a name or value: it could not be read back.
    """
    packed = "".join([f"{name}\x01{value}\x02" for name, value in properties.items()])
    if packed.count(NAME_END) != len(properties) or packed.count(PROPERTY_END) != len(properties):
        raise ProtocolError("A message property may not contain the separators 0x01 and 0x02.")
    return packed


def unpack_properties(packed: str) -> dict[str, str]:
    """Read a property string; pieces without a separator are skipped, as Apache's decoder does."""
    properties: dict[str, str] = {}
    for piece in packed.split(PROPERTY_END):
        name, found, value = piece.partition(NAME_END)
        if found:
            properties[name] = value
    return properties


def text_bytes(text: str) -> bytes:
    """UTF-8; ProtocolError for half a surrogate pair, which has no UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ProtocolError(
            "A text holds half a surrogate pair, which can't be written as UTF-8."
        ) from error


def _property_bytes(properties: Mapping[str, str]) -> bytes:
    packed = text_bytes(pack_properties(properties))
    if len(packed) > MAX_PROPERTIES_BYTES:
        raise ProtocolError(
            f"The properties take {len(packed)} bytes; {MAX_PROPERTIES_BYTES} are allowed."
        )
    return packed


# ---------------------------------------------------------------- hosts and ids


@lru_cache(maxsize=4096)
def host_bytes(host: str) -> bytes:
    """`ip:port` → 8 bytes (IPv4) or 20 bytes (IPv6): address, then port as i32. ProtocolError otherwise."""
    ip, _, port = host.rpartition(":")
    try:
        number = int(port)
        packed = ipaddress.ip_address(ip.strip("[]")).packed
    except ValueError as error:
        raise ProtocolError(f"{host!r} is not an address of the form ip:port.") from error
    if not 0 <= number <= 65535:
        raise ProtocolError(f"{host!r} has a port outside 0..65535.")
    return packed + _I32.pack(number)


@lru_cache(maxsize=4096)
def host_text(packed: bytes) -> str:
    """The reverse of `host_bytes`."""
    ip = ipaddress.ip_address(packed[:-4])
    port = _I32.unpack(packed[-4:])[0]
    return f"[{ip}]:{port}" if ip.version == 6 else f"{ip}:{port}"


@lru_cache(maxsize=4096)
def ip_port(address: str) -> str:
    """`address` if a message can carry it, else `0.0.0.0:0`: nodes of the simulated world have names."""
    try:
        host_bytes(address)
    except ProtocolError:
        return "0.0.0.0:0"
    return address


def offset_message_id(store_host: str, physical_offset: int) -> str:
    """The id that a broker answers to a send: hex of its address, its port and the place in the log."""
    return (host_bytes(store_host) + _I64.pack(physical_offset)).hex().upper()


def parse_offset_message_id(message_id: str) -> tuple[str, int]:
    """The reverse: (`ip:port`, physical offset). ProtocolError when it is no such id."""
    try:
        raw = bytes.fromhex(message_id)
    except ValueError as error:
        raise ProtocolError(
            f"{message_id!r} is not an offset message id: not hexadecimal."
        ) from error
    if len(raw) not in (16, 28):
        raise ProtocolError(f"{message_id!r} is not an offset message id: wrong length.")
    return host_text(raw[:-8]), _I64.unpack(raw[-8:])[0]


# ---------------------------------------------------------------- the record


def encode(message: StoredMessage, properties: Mapping[str, str] | None = None) -> bytes:
    """One record. The second version is written when the topic needs it (longer than 127 bytes).

    properties: to be written instead of the message's own. The host flags of `sys_flag` are set from the hosts.
    Raises ProtocolError for values out of range.
    """
    topic = text_bytes(message.topic)
    long_topic = len(topic) > MAX_TOPIC_BYTES
    packed = _property_bytes(message.properties if properties is None else properties)
    if len(topic) > MAX_PROPERTIES_BYTES:
        raise ProtocolError(
            f"The topic takes {len(topic)} bytes; {MAX_PROPERTIES_BYTES} are allowed."
        )
    born, store = host_bytes(message.born_host), host_bytes(message.store_host)
    sys_flag = message.sys_flag & ~(SYS_BORN_HOST_V6 | SYS_STORE_HOST_V6)
    sys_flag |= (SYS_BORN_HOST_V6 if len(born) > 8 else 0) | (
        SYS_STORE_HOST_V6 if len(store) > 8 else 0
    )
    body = message.body
    tail = (_I16.pack(len(topic)) if long_topic else bytes((len(topic),))) + topic
    tail += _I16.pack(len(packed)) + packed
    total = _FIXED.size + len(born) + 8 + len(store) + _TAIL.size + len(body) + len(tail)
    try:
        return b"".join(
            (
                _FIXED.pack(
                    total,
                    MAGIC_V2 if long_topic else MAGIC_V1,
                    zlib.crc32(body) & 0x7FFFFFFF,
                    message.queue_id,
                    message.flag,
                    message.queue_offset,
                    message.physical_offset,
                    sys_flag,
                    message.born_ms,
                ),
                born,
                _I64.pack(message.store_ms),
                store,
                _TAIL.pack(message.reconsume_times, message.prepared_transaction_offset, len(body)),
                body,
                tail,
            )
        )
    except struct.error as error:
        raise ProtocolError(f"A number of the message does not fit its field: {error}.") from error


def decode_all(data: bytes, *, inflate: bool = True) -> list[StoredMessage]:
    """All records of `data`, which must end with the last one. See `iter_decode`."""
    return list(iter_decode(data, inflate=inflate))


def decode_readable(data: bytes) -> tuple[list[StoredMessage], bool]:
    """The records up to the first that can't be read, and whether they are all; ProtocolError when none can be read.

    So that who goes on behind the last one that it got comes to stand before the broken one, and skips nothing.
    """
    messages = []
    try:
        for message in iter_decode(data):
            messages.append(message)  # noqa: PERF402 (what was read before an error counts)
    except ProtocolError:
        if not messages:
            raise
        return messages, False
    return messages, True


def iter_decode(data: bytes, *, inflate: bool = True) -> Iterator[StoredMessage]:
    """The records of `data`, one after the other.

    inflate: give compressed bodies (zlib) uncompressed and clear their compression flags; otherwise leave
    both as stored. Raises ProtocolError at a record with an unknown magic, an absurd length, a CRC that does
    not match, a text that is no UTF-8, or a compression that we don't know; records before it were given.
    """
    position, end = 0, len(data)
    room = MAX_INFLATED_BYTES_IN_ALL if inflate else -1
    while position < end:
        message, position, grown = _decode_one(data, position, end, room)
        room -= grown
        yield message


def _decode_one(data: bytes, start: int, end: int, room: int) -> tuple[StoredMessage, int, int]:
    """room: how many bytes a compressed body may grow to; below 0: it stays as it is. The last of the answer: to
    how many it grew."""
    if end - start < _SMALLEST:
        raise ProtocolError(f"A stored message is cut: {end - start} bytes at {start}.")
    fixed = _FIXED.unpack_from(data, start)
    total, magic, crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born_ms = fixed
    if not _SMALLEST <= total <= end - start:
        raise ProtocolError(
            f"A stored message at {start} has length {total}; {end - start} bytes are there."
        )
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise ProtocolError(f"A stored message at {start} has the unknown magic {magic}.")
    stop = start + total
    try:
        at = start + _FIXED.size
        width = 20 if sys_flag & SYS_BORN_HOST_V6 else 8
        born_host = host_text(data[at : at + width])
        at += width
        store_ms = _I64.unpack_from(data, at)[0]
        at += 8
        width = 20 if sys_flag & SYS_STORE_HOST_V6 else 8
        store_host = host_text(data[at : at + width])
        at += width
        reconsume_times, prepared, body_length = _TAIL.unpack_from(data, at)
        at += _TAIL.size
        if not 0 <= body_length <= stop - at - 3:
            raise ProtocolError(f"A stored message at {start} has body length {body_length}.")
        body = data[at : at + body_length]
        at += body_length
        if magic == MAGIC_V1:
            topic_length = data[at]
            at += 1
        else:
            topic_length = _U16.unpack_from(data, at)[0]
            at += 2
        if at + topic_length + 2 > stop:
            raise ProtocolError(f"A stored message at {start} has topic length {topic_length}.")
        topic = data[at : at + topic_length].decode()
        at += topic_length
        properties_length = _I16.unpack_from(data, at)[0]
        at += 2
        if properties_length < 0 or at + properties_length > stop:
            raise ProtocolError(
                f"A stored message at {start} has properties length {properties_length}."
            )
        properties = unpack_properties(data[at : at + properties_length].decode())
    except (struct.error, IndexError, ValueError) as error:
        raise ProtocolError(f"A stored message at {start} can't be read: {error}.") from error
    if zlib.crc32(body) & 0x7FFFFFFF != crc:
        raise ProtocolError(f"The body of the stored message at {start} does not match its CRC.")
    grown = 0
    if room >= 0 and sys_flag & SYS_COMPRESSED:
        body = _inflate(body, sys_flag, room)
        grown = len(body)
        sys_flag &= ~(SYS_COMPRESSED | SYS_COMPRESSION_TYPE)
    return (
        StoredMessage(
            topic,
            queue_id,
            queue_offset,
            physical_offset,
            body,
            properties,
            flag,
            sys_flag & ~(SYS_BORN_HOST_V6 | SYS_STORE_HOST_V6),
            born_ms,
            born_host,
            store_ms,
            store_host,
            reconsume_times,
            prepared,
        ),
        stop,
        grown,
    )


def plain_body(body: bytes, sys_flag: int) -> bytes:
    """The body as its producer gave it. ProtocolError for a compression that is broken, or that we don't know."""
    return _inflate(body, sys_flag) if sys_flag & SYS_COMPRESSED else body


def _inflate(body: bytes, sys_flag: int, room: int = MAX_INFLATED_BYTES) -> bytes:
    if sys_flag & SYS_COMPRESSION_TYPE not in _ZLIB_TYPES:
        kind = (sys_flag & SYS_COMPRESSION_TYPE) >> 8
        raise ProtocolError(
            f"A message body is compressed by type {kind}; only zlib (0, 3) can be read."
        )
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(
            body, max(min(room, MAX_INFLATED_BYTES), 1)
        )  # 0 would mean no limit
    except zlib.error as error:
        raise ProtocolError(f"A compressed message body can't be read: {error}.") from error
    if stream.unconsumed_tail or not stream.eof:
        raise ProtocolError(
            "A compressed message body is cut, or larger than 64 MiB (256 MiB with those before it)."
        )
    return plain


# ---------------------------------------------------------------- the batch a client sends


@dataclass(frozen=True, slots=True)
class BatchPart:
    """One message inside the body of SEND_BATCH_MESSAGE."""

    body: bytes
    properties: Mapping[str, str] = field(default_factory=lambda: NO_EXT)
    flag: int = 0


def encode_batch(parts: list[BatchPart]) -> bytes:
    """The body of SEND_BATCH_MESSAGE: i32 total, magic 0, CRC 0, flag, body length; body; i16, properties."""
    pieces: list[bytes] = []
    for part in parts:
        properties = _property_bytes(part.properties)
        total = _BATCH_HEAD.size + len(part.body) + 2 + len(properties)
        pieces += (
            _BATCH_HEAD.pack(total, 0, 0, part.flag, len(part.body)),
            part.body,
            _I16.pack(len(properties)),
            properties,
        )
    return b"".join(pieces)


def decode_batch(data: bytes) -> list[BatchPart]:
    """The reverse of `encode_batch`; ProtocolError for absurd lengths."""
    parts: list[BatchPart] = []
    at, end = 0, len(data)
    while at < end:
        if end - at < _BATCH_HEAD.size + 2:
            raise ProtocolError(f"A batch is cut: {end - at} bytes at {at}.")
        total, _, _, flag, body_length = _BATCH_HEAD.unpack_from(data, at)
        room = total - _BATCH_HEAD.size - 2  # for body and properties
        if not 0 <= room <= end - at or not 0 <= body_length <= room or total > end - at:
            raise ProtocolError(
                f"A message of a batch has length {total} and body length {body_length}."
            )
        body_at = at + _BATCH_HEAD.size
        body = data[body_at : body_at + body_length]
        properties_at = body_at + body_length + 2
        properties_length = _I16.unpack_from(data, properties_at - 2)[0]
        if properties_length < 0 or properties_at + properties_length != at + total:
            raise ProtocolError(f"A message of a batch has properties length {properties_length}.")
        try:
            properties = unpack_properties(data[properties_at : at + total].decode())
        except ValueError as error:
            raise ProtocolError("The properties of a batched message are not UTF-8.") from error
        parts.append(BatchPart(body, properties, flag))
        at += total
    return parts
