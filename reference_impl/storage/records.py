"""A record of the log with a check sum over all of it.

The layout's own CRC covers the body alone: a record that was cut in its properties by a crash can look whole. So
every record of ours ends with the property that RocketMQ 5 writes with `enabledAppendPropCRC=true`, the CRC of all
bytes before it; records of other brokers may lack it.
Source: docs/sources.md#store (MessageDecoder.createCrc32, CommitLog.checkMessageAndReturnSize).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace

from reference_impl.protocol.message import PROPERTY_END, StoredMessage, encode

PROPERTY_CRC = "__CRC32#"
DIGITS = 10
SUM_BYTES = len(PROPERTY_CRC) + 1 + DIGITS + 1  # with its two separators


def encode_checked(message: StoredMessage) -> bytes:
    """The record, its check sum at its end. Raises ProtocolError as `encode` does."""
    record = encode(replace(message, properties={**without_sum(message.properties), PROPERTY_CRC: "0" * DIGITS}))
    return record[: -DIGITS - 1] + _digits(record[:-SUM_BYTES]) + PROPERTY_END.encode()


def without_sum(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without the check sum: those that a client sent."""
    return {name: value for name, value in properties.items() if name != PROPERTY_CRC}


def fault_of(record: bytes, message: StoredMessage, *, must_have_sum: bool) -> str | None:
    """What is wrong with a record that could be decoded; None when nothing is."""
    found = message.properties.get(PROPERTY_CRC)
    if found is None:
        return "a record without a check sum" if must_have_sum else None
    if not record.endswith(PROPERTY_END.encode()):
        return "a record that does not end with its check sum"
    return None if found.encode() == _digits(record[:-SUM_BYTES]) else "a record that does not match its check sum"


def _digits(data: bytes) -> bytes:
    """RocketMQ writes the sum of 31 bits with its last digit first, filled up with zeros."""
    return f"{zlib.crc32(data) & 0x7FFFFFFF:0{DIGITS}d}"[::-1].encode()
