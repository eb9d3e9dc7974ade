"""The hashes of what a message carries: the same number wherever it is seen, by whomever it is recorded."""

from __future__ import annotations

import zlib
from collections.abc import Mapping


def body_hash(body: bytes) -> int:
    """CRC-32, as an unsigned number."""
    return zlib.crc32(body)


def props_hash(properties: Mapping[str, str]) -> int:
    """CRC-32 of the sender's own properties by name: of each its name, 0x01, its value, 0x02. 0 where there are none.

    properties: without those of the protocol, which it and the brokers add and change on the way.
    """
    packed = "".join(f"{name}\x01{properties[name]}\x02" for name in sorted(properties))
    return zlib.crc32(packed.encode("utf-8", "surrogatepass"))
