"""Commands as bytes, and back.

    int32 length of what follows · int8 header type · int24 header length · header · body      (big-endian)

Header type 0 is JSON: code, language, version, opaque, flag, remark, extFields.
Type 1 is RocketMQ's binary one: code i16 · language i8 · version i16 · opaque i32 · flag i32 · i32 + remark ·
i32 + (i16 + name, i32 + value) repeated.
Source: `RemotingCommand`, `RocketMQSerializable` of apache/rocketmq; checked against 4.9.7 and 5.4.0.

A peer may answer a binary request in JSON (5.x name servers do), so the type is read from every frame.
A length beyond `MAX_FRAME_BYTES` is refused as soon as its four bytes are here, before anything is kept.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from reference_impl.protocol.command import NO_EXT, Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.message import text_bytes

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The whole frame, its length field included, as Apache's default has it."""

JSON_HEADER = 0
BINARY_HEADER = 1

LANGUAGES = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY",
    "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
)  # fmt: skip
"""By their numbers in a binary header."""

_LANGUAGE_NUMBERS = {name: number for number, name in enumerate(LANGUAGES)}
_OTHER = "OTHER"
_quoted = json.encoder.encode_basestring_ascii
_I32 = struct.Struct(">i")
_PREFIX = struct.Struct(">iI")
_BINARY_HEAD = struct.Struct(
    ">hbhiii"
)  # code, language, version, opaque, flag, length of the remark
_NAME_LENGTH = struct.Struct(">h")


# ---------------------------------------------------------------- writing


def encode_frame(command: Command) -> bytes:
    """One whole frame. ProtocolError for a value that the header can't carry, or a frame that is too long."""
    header = _binary_header(command) if command.binary else _json_header(command)
    length = 4 + len(header) + len(command.body)
    if length + 4 > MAX_FRAME_BYTES:
        raise ProtocolError(
            f"A frame of {length + 4} bytes is too long; {MAX_FRAME_BYTES} are allowed."
        )
    kind = BINARY_HEADER if command.binary else JSON_HEADER
    return b"".join((_PREFIX.pack(length, kind << 24 | len(header)), header, command.body))


def _json_header(command: Command) -> bytes:
    """As `json.dumps` writes it, without blanks; put together by hand, which takes half of the time."""
    fields = ",".join([f"{_quoted(name)}:{_quoted(value)}" for name, value in command.ext.items()])
    remark = "" if command.remark is None else f',"remark":{_quoted(command.remark)}'
    return (
        f'{{"code":{int(command.code)},"extFields":{{{fields}}},"flag":{int(command.flag)},'
        f'"language":{_quoted(command.language)},"opaque":{int(command.opaque)},'
        f'"serializeTypeCurrentRPC":"JSON","version":{int(command.version)}{remark}}}'
    ).encode()


def _binary_header(command: Command) -> bytes:
    fields: list[bytes] = []
    for name, value in command.ext.items():
        raw_name, raw_value = text_bytes(name), text_bytes(value)
        if len(raw_name) > 32767:
            raise ProtocolError("The name of a header field is longer than 32767 bytes.")
        fields += (_NAME_LENGTH.pack(len(raw_name)), raw_name, _I32.pack(len(raw_value)), raw_value)
    packed = b"".join(fields)
    remark = text_bytes(command.remark or "")
    language = _LANGUAGE_NUMBERS.get(command.language, _LANGUAGE_NUMBERS[_OTHER])
    try:
        head = _BINARY_HEAD.pack(
            command.code, language, command.version, command.opaque, command.flag, len(remark)
        )
    except struct.error as error:
        raise ProtocolError(
            f"Code {command.code} or another number does not fit a binary header: {error}."
        ) from error
    return b"".join((head, remark, _I32.pack(len(packed)), packed))


# ---------------------------------------------------------------- reading


class FrameDecoder:
    """Bytes in pieces of any size → commands.

    `feed` takes bytes, `next_command` gives the commands one by one, None when the rest is not yet here.
    After a ProtocolError the stream has no meaning any more; every later call raises it again.
    """

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._max = max_frame_bytes
        self._broken: ProtocolError | None = None

    @property
    def pending_bytes(self) -> int:
        """Bytes of a frame that is not yet whole: not zero at the end of a stream means that it was cut."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_command(self) -> Command | None:
        if self._broken is not None:
            raise self._broken
        try:
            return self._next()
        except ProtocolError as error:
            self._broken = error
            self._buffer.clear()
            raise

    def _next(self) -> Command | None:
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        length = _I32.unpack_from(buffer)[0]
        if not 4 <= length <= self._max - 4:
            raise ProtocolError(
                f"A frame says that it has {length} bytes; 4 to {self._max - 4} are allowed."
            )
        if len(buffer) < 4 + length:
            return None
        frame = bytes(memoryview(buffer)[4 : 4 + length])
        del buffer[: 4 + length]
        return decode_frame(frame)


def decode_frame(frame: bytes) -> Command:
    """One frame without its length field. ProtocolError when the header can't be read."""
    if len(frame) < 4:
        raise ProtocolError(f"A frame has {len(frame)} bytes; at least 4 are needed.")
    kind = frame[0]
    header_end = 4 + int.from_bytes(frame[1:4], "big")
    if header_end > len(frame):
        raise ProtocolError(
            f"A header says that it has {header_end - 4} bytes; {len(frame) - 4} are there."
        )
    header, body = frame[4:header_end], frame[header_end:]
    if kind == JSON_HEADER:
        return _from_json(header, body)
    if kind == BINARY_HEADER:
        return _from_binary(header, body)
    raise ProtocolError(f"A frame has the unknown header type {kind}.")


def _from_json(header: bytes, body: bytes) -> Command:
    try:
        fields = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"A header is not JSON: {str(error)[:100]}.") from error
    if not isinstance(fields, dict):
        raise ProtocolError("A header is JSON, but no object.")
    remark, language = fields.get("remark"), fields.get("language")
    command = Command(
        code=_number(fields, "code"),
        ext=_ext(fields.get("extFields")),
        body=body,
        opaque=_number(fields, "opaque"),
        flag=_number(fields, "flag"),
        remark=remark if isinstance(remark, str) else None,
        language=language if isinstance(language, str) else _OTHER,
        version=_number(fields, "version"),
    )
    if b"\\u" in header:  # an escape may make half a surrogate pair: no text that could be sent on
        for text in (command.remark or "", command.language, *command.ext, *command.ext.values()):
            text_bytes(text)
    return command


def _number(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 31) <= value < 1 << 31:
        raise ProtocolError(f"The header's {name} is not a number of 32 bits.")
    return value


def _ext(value: Any) -> Mapping[str, str]:
    if value is None:
        return NO_EXT
    if not isinstance(value, dict):
        raise ProtocolError("The header's extFields are no object.")
    ext: dict[str, str] = {}
    for name, item in value.items():
        if isinstance(item, str):
            ext[name] = item
        elif isinstance(item, bool):
            ext[name] = "true" if item else "false"
        elif isinstance(item, int) and abs(item) < 1 << 63:
            ext[name] = str(item)  # some clients write numbers without quotes
        elif item is not None:
            raise ProtocolError(f"The header field {name[:40]!r} is no string.")
    return ext


def _from_binary(header: bytes, body: bytes) -> Command:
    try:
        code, language, version, opaque, flag, remark_length = _BINARY_HEAD.unpack_from(header)
        at = _BINARY_HEAD.size
        remark, at = _text(header, at, remark_length)
        fields_length = _I32.unpack_from(header, at)[0]
        at += 4
        end = at + fields_length
        if fields_length < 0 or end > len(header):
            raise ProtocolError(f"A binary header says that its fields take {fields_length} bytes.")
        ext: dict[str, str] = {}
        while at < end:
            name, at = _text(header, at + 2, _NAME_LENGTH.unpack_from(header, at)[0])
            value, at = _text(header, at + 4, _I32.unpack_from(header, at)[0])
            ext[name] = value
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"A binary header can't be read: {error}.") from error
    return Command(
        code=code,
        ext=ext,
        body=body,
        opaque=opaque,
        flag=flag,
        remark=remark or None,
        language=LANGUAGES[language] if 0 <= language < len(LANGUAGES) else _OTHER,
        version=version,
        binary=True,
    )


def _text(header: bytes, at: int, length: int) -> tuple[str, int]:
    end = at + length
    if length < 0 or end > len(header):
        raise ProtocolError(f"A binary header has a text of length {length}.")
    return header[at:end].decode(), end
