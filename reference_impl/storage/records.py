"""A record of the log with a check sum over all of it.

The layout's own CRC covers the body alone: a record that was cut in its properties by a crash can look whole. So
every record of ours ends with the property that RocketMQ 5 writes with `enabledAppendPropCRC=true`, the CRC of all
bytes before it. Records of other brokers may lack it. Where a crash can have torn them they must be exact: what a
crash leaves out is zeros, and there are none in a topic or in properties, and the lengths add up.
Source: docs/sources.md#store (MessageDecoder.createCrc32, CommitLog.checkMessageAndReturnSize).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from reference_impl.protocol.message import (
    MAGIC_V2,
    PROPERTY_END,
    SYS_BORN_HOST_V6,
    SYS_STORE_HOST_V6,
    StoredMessage,
    encode,
)

PROPERTY_CRC = "__CRC32#"
DIGITS = 10
_FLAGS_AT = 36
_I32 = struct.Struct(">i")
_U16 = struct.Struct(">H")
SUM_BYTES = len(PROPERTY_CRC) + 1 + DIGITS + 1  # with its two separators


def encode_checked(message: StoredMessage) -> bytes:
    """The record, its check sum at its end. Raises ProtocolError as `encode` does."""
    properties = without_sum(message.properties)
    properties[PROPERTY_CRC] = "0" * DIGITS
    record = encode(message, properties)
    return record[: -DIGITS - 1] + _digits(record[:-SUM_BYTES]) + PROPERTY_END.encode()


def without_sum(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without the check sum: those that a client sent."""
    own = dict(properties)
    own.pop(PROPERTY_CRC, None)
    return own


def fault_of(record: bytes, message: StoredMessage, *, may_be_torn: bool) -> str | None:
    """What is wrong with a record that could be decoded; None when nothing is."""
    found = message.properties.get(PROPERTY_CRC)
    if found is None:
        return "a record that is not whole" if may_be_torn and not _is_exact(record) else None
    if not record.endswith(PROPERTY_END.encode()):
        return "a record that does not end with its check sum"
    return (
        None
        if found.encode() == _digits(record[:-SUM_BYTES])
        else "a record that does not match its check sum"
    )


def _is_exact(record: bytes) -> bool:
    """Do the lengths add up to the record's, and is there a topic, and no zero byte in it or in the properties?"""
    flags = _I32.unpack_from(record, _FLAGS_AT)[0]
    hosts = sum(20 if flags & v6 else 8 for v6 in (SYS_BORN_HOST_V6, SYS_STORE_HOST_V6))
    at = (
        _FLAGS_AT + 4 + 8 + 8 + hosts + 4 + 8
    )  # behind: born and store times, hosts, retries, prepared offset
    at += 4 + _I32.unpack_from(record, at)[0]
    wide = _I32.unpack_from(record, 4)[0] == MAGIC_V2
    length = _U16.unpack_from(record, at)[0] if wide else record[at]
    texts = record[at + (2 if wide else 1) :]
    topic, rest = texts[:length], texts[length:]
    return (
        bool(topic)
        and len(rest) == 2 + _U16.unpack_from(rest)[0]
        and b"\0" not in topic
        and b"\0" not in rest[2:]
    )


def _digits(data: bytes) -> bytes:
    """RocketMQ writes the sum of 31 bits with its last digit first, filled up with zeros."""
    return f"{zlib.crc32(data) & 0x7FFFFFFF:0{DIGITS}d}"[::-1].encode()
