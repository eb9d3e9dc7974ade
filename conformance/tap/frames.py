"""Frames of the remoting protocol as who stands in between reads them: the bytes to hand on, and what they say."""

from __future__ import annotations

import asyncio
import struct

from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.frame import MAX_FRAME_BYTES, decode_frame

_LENGTH = struct.Struct(">i")


async def read_frame(reader: asyncio.StreamReader) -> tuple[bytes, Command] | None:
    """The next frame and what it says; None at the end of the stream, and where it is no frame."""
    try:
        head = await reader.readexactly(_LENGTH.size)
        (length,) = _LENGTH.unpack(head)
        if not 4 <= length <= MAX_FRAME_BYTES - _LENGTH.size:
            return None
        frame = await reader.readexactly(length)
        return head + frame, decode_frame(frame)
    except (asyncio.IncompleteReadError, ConnectionError, ProtocolError):
        return None
