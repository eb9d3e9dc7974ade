"""Bad inputs worth remembering, each with what a broker owes to whoever sends it.

Some are what the fuzzer found once, some what other implementations fell over, some the edges of the format.
`code` is the answer's; None: the connection is closed, as nothing behind a broken frame has a meaning any more.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from inorder.evidence.fuzzing.readers import BATCH, SEND, STORED
from reference_impl.protocol import headers as h
from reference_impl.protocol.codes import RequestCode as Ask
from reference_impl.protocol.codes import ResponseCode as Code
from reference_impl.protocol.command import NO_EXT, Command
from reference_impl.protocol.frame import encode_frame
from reference_impl.protocol.message import SYS_COMPRESSED, encode

CLOSED = None


@dataclass(frozen=True, slots=True)
class Bad:
    """One input, a whole one or a beginning."""

    name: str
    data: bytes
    code: int | None


def _framed(header: bytes, kind: int = 0, body: bytes = b"") -> bytes:
    rest = bytes((kind,)) + len(header).to_bytes(3, "big") + header + body
    return len(rest).to_bytes(4, "big") + rest


def _json(**fields: object) -> bytes:
    return _framed(
        json.dumps({"code": 34, "opaque": 7, "flag": 0, "version": 399, **fields}).encode()
    )


def _request(code: int, ext: Mapping[str, str] = NO_EXT, body: bytes = b"") -> bytes:
    return encode_frame(Command(code, ext, body, opaque=7))


def _binary(remark: int = 0, fields: bytes = b"", length: int | None = None) -> bytes:
    head = (
        (34).to_bytes(2, "big")
        + b"\0"
        + (399).to_bytes(2, "big")
        + (7).to_bytes(4, "big")
        + bytes(4)
    )
    size = len(fields) if length is None else length
    return _framed(
        head
        + remark.to_bytes(4, "big", signed=True)
        + size.to_bytes(4, "big", signed=True)
        + fields,
        kind=1,
    )


def _without(name: str) -> dict[str, str]:
    ext = SEND.to_ext()
    del ext[name]
    return ext


FRAMES = (
    Bad("a length of 0", bytes(4), CLOSED),
    Bad("a length below 0", b"\xff\xff\xff\xff", CLOSED),
    Bad("a length of 2 GiB", b"\x7f\xff\xff\xff", CLOSED),
    Bad("a length beyond 16 MiB", (16 * 1024 * 1024 + 1).to_bytes(4, "big"), CLOSED),
    Bad("a request of HTTP", b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", CLOSED),
    Bad("the beginning of TLS", bytes.fromhex("1603010200"), CLOSED),
    Bad("a header longer than its frame", b"\0\0\0\4\0\xff\xff\xff", CLOSED),
    Bad("a header of an unknown kind", _framed(b"{}", kind=7), CLOSED),
    Bad("a header that is not JSON", _framed(b"{code:"), CLOSED),
    Bad("a header that is no object", _framed(b"[1,2]"), CLOSED),
    Bad("a header that is not UTF-8", _framed(b'{"code":34,"remark":"\xff"}'), CLOSED),
    Bad("a header that is nested too deep", _framed(b'{"extFields":' + b"[" * 100_000), CLOSED),
    Bad("a code of 5000 digits", _framed(b'{"code":' + b"9" * 5_000 + b"}"), CLOSED),
    Bad("a code of 33 bits", _json(code=2**32), CLOSED),
    Bad("a code that is a word", _json(code="34"), CLOSED),
    Bad("an opaque that is no number", _framed(b'{"code":34,"opaque":NaN}'), CLOSED),
    Bad("fields that are a list", _json(extFields=["topic"]), CLOSED),
    Bad("a field that is an object", _json(extFields={"topic": {"a": 1}}), CLOSED),
    Bad("half a surrogate pair", _framed(b'{"code":34,"extFields":{"a":"\\ud800"}}'), CLOSED),
    Bad("a binary header that is cut", _framed(b"\0\x22\0", kind=1), CLOSED),
    Bad("a binary header whose remark has a length below 0", _binary(remark=-1), CLOSED),
    Bad("a binary header whose remark is longer than it", _binary(remark=10_000), CLOSED),
    Bad("a binary header whose fields are longer than it", _binary(length=10_000), CLOSED),
    Bad(
        "a binary header with a field of length -1",
        _binary(fields=b"\0\1a\xff\xff\xff\xff"),
        CLOSED,
    ),
    Bad(
        "a binary header with a name that is not UTF-8", _binary(fields=b"\0\1\xff\0\0\0\0"), CLOSED
    ),
)
"""Nothing that could be answered."""

REQUESTS = (
    Bad("a code that nobody knows", _request(31_999), Code.REQUEST_CODE_NOT_SUPPORTED),
    Bad("no code at all", _framed(b'{"opaque":7}'), Code.REQUEST_CODE_NOT_SUPPORTED),
    Bad(
        "a send without a topic",
        _request(Ask.SEND_MESSAGE, _without("topic"), b"x"),
        Code.SYSTEM_ERROR,
    ),
    Bad("a send without anything", _request(Ask.SEND_MESSAGE_V2), Code.SYSTEM_ERROR),
    Bad(
        "a queue that is no number",
        _request(Ask.SEND_MESSAGE, {**SEND.to_ext(), "queueId": "first"}, b"x"),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a queue of 33 bits",
        _request(Ask.SEND_MESSAGE, {**SEND.to_ext(), "queueId": str(2**32)}, b"x"),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a number in Arabic digits",
        _request(Ask.SEND_MESSAGE, {**SEND.to_ext(), "queueId": "١"}, b"x"),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a topic that is a path",
        _request(Ask.SEND_MESSAGE, replace(SEND, topic="../../etc/passwd").to_ext(), b"x"),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a topic of 1000 letters",
        _request(Ask.SEND_MESSAGE, replace(SEND, topic="t" * 1_000).to_ext(), b"x"),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a delay level that is a word",
        _request(Ask.SEND_MESSAGE, replace(SEND, properties="DELAY\x01soon\x02").to_ext(), b"x"),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "properties beyond 32767 bytes",
        _request(Ask.SEND_MESSAGE, replace(SEND, properties="p\x01" + "x" * 40_000).to_ext(), b"x"),
        Code.MESSAGE_ILLEGAL,
    ),
    Bad(
        "a body beyond 4 MiB",
        _request(Ask.SEND_MESSAGE_V2, SEND.to_ext_v2(), bytes(4 * 1024 * 1024 + 1)),
        Code.MESSAGE_ILLEGAL,
    ),
    Bad(
        "a batch that is cut",
        _request(Ask.SEND_BATCH_MESSAGE, replace(SEND, batch=True).to_ext_v2(), BATCH[:-3]),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a batch whose message is longer than it",
        _request(
            Ask.SEND_BATCH_MESSAGE, replace(SEND, batch=True).to_ext_v2(), b"\x7f" + BATCH[1:]
        ),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "locks that are not JSON", _request(Ask.LOCK_BATCH_MQ, body=b"\x00\x01"), Code.SYSTEM_ERROR
    ),
    Bad("locks that are a number", _request(Ask.LOCK_BATCH_MQ, body=b"7"), Code.SYSTEM_ERROR),
    Bad(
        "a heartbeat of many quotes without an end",
        _request(Ask.HEART_BEAT, body=b"{1:" + b'\\"' * 1_000_000),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a heartbeat that is nested too deep",
        _request(Ask.HEART_BEAT, body=b"[" * 1_000_000),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a topic of two thousand million queues",
        _request(
            Ask.UPDATE_AND_CREATE_TOPIC, h.CreateTopicHeader("huge", 2**31 - 1, 2**31 - 1).to_ext()
        ),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a group with two thousand million retry queues",
        _request(
            Ask.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            body=b'{"groupName":"g","retryQueueNums":2147483647}',
        ),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a send-back of a message that is not there",
        _request(Ask.CONSUMER_SEND_MSG_BACK, h.SendBackHeader(2**62, "billing", 0).to_ext()),
        Code.SYSTEM_ERROR,
    ),
    Bad(
        "a look at a place below 0",
        _request(Ask.VIEW_MESSAGE_BY_ID, {"offset": "-1"}),
        Code.SYSTEM_ERROR,
    ),
)
"""Whole frames, which get a code."""

BOMB = encode(
    replace(STORED, body=zlib.compress(bytes(80 * 1024 * 1024), 9), sys_flag=SYS_COMPRESSED)
)
"""A message of 80 KiB whose body grows to 80 MiB."""
