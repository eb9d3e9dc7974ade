"""Frames survive the round trip in pieces of any size, and hostile bytes end in one clear error."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.frame import (
    LANGUAGES,
    MAX_FRAME_BYTES,
    FrameDecoder,
    decode_frame,
    encode_frame,
)

int32 = st.integers(-(2**31), 2**31 - 1)
int16 = st.integers(-(2**15), 2**15 - 1)
text = st.text(st.characters(codec="utf-8"), max_size=30)


@st.composite
def commands(draw: st.DrawFn) -> Command:
    binary = draw(st.booleans())
    return Command(
        code=draw(int16 if binary else int32),
        ext=draw(st.dictionaries(text, text, max_size=5)),
        body=draw(st.binary(max_size=200)),
        opaque=draw(int32),
        flag=draw(int32),
        remark=draw(st.none() | text.filter(bool)),
        language=draw(st.sampled_from(LANGUAGES)),
        version=draw(int16),
        binary=binary,
    )


def read_all(decoder: FrameDecoder) -> list[Command]:
    return list(iter(decoder.next_command, None))


@given(st.lists(commands(), max_size=4), st.data())
def test_commands_survive_any_cut(sent: list[Command], data: st.DataObject) -> None:
    """What was written is read, however the stream is cut into pieces."""
    stream = b"".join(map(encode_frame, sent))
    decoder, received, at = FrameDecoder(), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, max(1, len(stream) - at)))
        decoder.feed(stream[at : at + size])
        received += read_all(decoder)
        at += size
    assert received == sent
    assert decoder.pending_bytes == 0


@given(commands(), st.text(max_size=5), st.text(max_size=5))
def test_a_json_header_is_what_the_library_writes(command: Command, name: str, value: str) -> None:
    """Byte for byte, for any text: quotes, control characters, halves of surrogate pairs."""
    command = replace(command, binary=False, ext={**command.ext, name: value})
    header = {
        "code": command.code,
        "extFields": dict(command.ext),
        "flag": command.flag,
        "language": command.language,
        "opaque": command.opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": command.version,
    } | ({} if command.remark is None else {"remark": command.remark})
    frame = encode_frame(command)
    assert (
        frame[8 : 8 + int.from_bytes(frame[5:8])]
        == json.dumps(header, separators=(",", ":")).encode()
    )


@given(st.binary(max_size=300))
def test_random_bytes_never_crash(data: bytes) -> None:
    """Random bytes are commands, an unfinished frame or a ProtocolError; nothing else."""
    decoder = FrameDecoder()
    decoder.feed(data)
    try:
        read_all(decoder)
    except ProtocolError as error:
        with pytest.raises(ProtocolError, match=re.escape(str(error))):
            decoder.next_command()


@given(commands(), st.data())
def test_one_changed_byte_never_crashes(command: Command, data: st.DataObject) -> None:
    """A frame with a changed byte is read differently or refused."""
    frame = bytearray(encode_frame(command))
    at = data.draw(st.integers(4, len(frame) - 1))
    frame[at] = data.draw(st.integers(0, 255))
    try:
        received = decode_frame(bytes(frame[4:]))
    except ProtocolError:
        return
    encode_frame(received)  # whatever was accepted can be sent on


@pytest.mark.parametrize("length", [0x7FFFFFFF, -1, -(2**31), 0, 3, MAX_FRAME_BYTES - 3])
def test_absurd_length_is_refused_before_anything_is_kept(length: int) -> None:
    decoder = FrameDecoder()
    decoder.feed(struct.pack(">i", length))
    with pytest.raises(ProtocolError, match="A frame says that it has"):
        decoder.next_command()
    assert decoder.pending_bytes == 0


def test_good_frames_before_a_broken_one_are_given() -> None:
    decoder = FrameDecoder()
    decoder.feed(encode_frame(Command(code=34, opaque=7)) + struct.pack(">i", 0x7FFFFFFF))
    first = decoder.next_command()
    assert first is not None
    assert first.opaque == 7
    with pytest.raises(ProtocolError):
        decoder.next_command()


def json_frame(header: bytes, kind: int = 0) -> bytes:
    return bytes([kind]) + len(header).to_bytes(3, "big") + header


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\0\0\5{",  # the header is longer than the frame
        json_frame(b"{{{{"),
        json_frame(b"[]"),
        json_frame(b"[" * 100_000),
        json_frame(b'{"code":' + b"9" * 5000 + b"}"),
        json_frame(b'{"code":"10"}'),
        json_frame(b'{"code":4294967296}'),
        json_frame(b'{"code":1,"extFields":[1]}'),
        json_frame(b'{"code":1,"extFields":{"a":{"b":1}}}'),
        json_frame(b'{"code":1,"extFields":{"a":1.5}}'),
        json_frame(b'{"code":1,"remark":"\\ud800"}'),
        json_frame(b"\xff\xfe\xfd"),
        json_frame(b"{}", kind=2),
        json_frame(b"", kind=1),
        json_frame(struct.pack(">hbhiii", 10, 0, 0, 1, 0, 2**31 - 1), kind=1),
        json_frame(struct.pack(">hbhiiii", 10, 0, 0, 1, 0, 0, 2**31 - 1), kind=1),
        json_frame(struct.pack(">hbhiiiih", 10, 0, 0, 1, 0, 0, 2, -1), kind=1),
    ],
)
def test_broken_headers_are_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_frame(frame)


def test_headers_of_other_clients_are_read() -> None:
    """Numbers and booleans without quotes, null fields, an unknown language, unknown members."""
    header = json.dumps(
        {
            "code": 11,
            "language": "COBOL",
            "extFields": {"queueId": 3, "order": True, "none": None, "topic": "T"},
            "opaque": 5,
            "more": [],
        }
    ).encode()
    command = decode_frame(json_frame(header) + b"body")
    assert command == Command(
        code=11,
        ext={"queueId": "3", "order": "true", "topic": "T"},
        body=b"body",
        opaque=5,
        language="COBOL",
        version=0,
    )


def test_a_code_of_more_than_16_bits_needs_json() -> None:
    command = Command(code=RequestCode.POP_MESSAGE, binary=True)
    with pytest.raises(ProtocolError, match="does not fit a binary header"):
        encode_frame(command)
    assert decode_frame(encode_frame(replace(command, binary=False))[4:]).code == 200050


def test_a_frame_that_is_too_long_is_not_written() -> None:
    with pytest.raises(ProtocolError, match="too long"):
        encode_frame(Command(code=10, body=bytes(MAX_FRAME_BYTES)))
    body = bytes(MAX_FRAME_BYTES - 1000)
    decoder = FrameDecoder()
    decoder.feed(encode_frame(Command(code=10, body=body)))
    received = decoder.next_command()
    assert received is not None
    assert received.body == body
