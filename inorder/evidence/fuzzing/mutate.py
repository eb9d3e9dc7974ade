"""Changes bytes in the ways in which they go wrong: by accident, by a careless program, by malice.

All choices come from the stream that is handed in: the same seed gives the same inputs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

INTERESTING = (
    0,
    1,
    -1,
    2,
    4,
    127,
    128,
    255,
    256,
    32_767,
    32_768,
    65_535,
    2**24 - 1,
    2**31 - 1,
    -(2**31),
    2**63 - 1,
)
TOKENS = (
    b"\x00", b"\x01", b"\x02", b"\xff", b"\xc3", b"\xed\xa0\x80", b'"', b"\\", b"\\u", b"\\ud800", b"{", b"}", b"[",
    b":", b",", b"null", b"true", b"1e999", b"-", b"9" * 30, b"%RETRY%", b"TBW102", b"code", b"extFields", b"\n",
)  # fmt: skip
"""Words that mean something to one of the readers."""
SIZE_MAX = 64 * 1024


def _flip(data: bytearray, choices: Random) -> None:
    at = choices.randrange(len(data))
    data[at] ^= 1 << choices.randrange(8)


def _set(data: bytearray, choices: Random) -> None:
    data[choices.randrange(len(data))] = choices.randrange(256)


def _number(data: bytearray, choices: Random) -> None:
    """A number where one may stand, big-endian."""
    width = choices.choice((1, 2, 4, 8))
    value = choices.choice(INTERESTING) & (1 << 8 * width) - 1
    at = choices.randrange(len(data))
    data[at : at + width] = value.to_bytes(width, "big")


def _cut(data: bytearray, choices: Random) -> None:
    del data[choices.randrange(len(data)) :]


def _remove(data: bytearray, choices: Random) -> None:
    at = choices.randrange(len(data))
    del data[at : at + choices.randrange(1, 17)]


def _insert(data: bytearray, choices: Random) -> None:
    at = choices.randrange(len(data) + 1)
    data[at:at] = choices.choice(TOKENS) * choices.choice((1, 1, 1, 2, 100))


def _repeat(data: bytearray, choices: Random) -> None:
    at = choices.randrange(len(data))
    piece = data[at : at + choices.randrange(1, 65)]
    data[at:at] = piece * choices.choice((1, 2, 30))


CHANGES: Sequence[Callable[[bytearray, Random], None]] = (
    _flip,
    _set,
    _number,
    _cut,
    _remove,
    _insert,
    _repeat,
)


STRANGE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    7.5,
    2**31,
    2**63,
    float("inf"),
    "",
    "x",
    "1",
    [],
    [None],
    {},
    {"": 0},
)
"""Where JSON has a value, another."""


def swap_in_json(data: bytes, choices: Random) -> bytes:
    """One value, at any depth, becomes a strange one, or goes; what is no JSON stays as it is."""
    try:
        root = json.loads(data)
    except ValueError:
        return data
    places = [(root, key) for key in _keys(root)]
    for holder, key in places:  # grows while it is walked
        places += [(holder[key], inner) for inner in _keys(holder[key])]
    if not places or choices.random() < 0.05:
        return json.dumps(choices.choice(STRANGE)).encode()
    holder, key = choices.choice(places)
    if choices.random() < 0.2:
        del holder[key]
    else:
        holder[key] = choices.choice(STRANGE)
    return json.dumps(root).encode()


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value))) if isinstance(value, list) else []


def mutate(seeds: Sequence[bytes], choices: Random) -> bytes:
    """One of the seeds, changed one to six times, or two of them put together; at most 64 KiB."""
    data = bytearray(choices.choice(seeds))
    if data[:1] == b"{" and choices.random() < 0.5:
        return swap_in_json(bytes(data), choices)
    if choices.random() < 0.1:
        other = choices.choice(seeds)
        data = data[: choices.randrange(len(data) + 1)] + other[choices.randrange(len(other) + 1) :]
    for _ in range(choices.randrange(1, 7)):
        if not data:
            data += choices.choice(TOKENS)
        choices.choice(CHANGES)(data, choices)
    return bytes(data[:SIZE_MAX])


def mutate_framed(seeds: Sequence[bytes], choices: Random) -> bytes:
    """As `mutate`, mostly within the header or the body of a frame, whose lengths are right again afterwards."""
    if choices.random() < 0.2:
        return mutate(seeds, choices)
    frame = choices.choice(seeds)
    end = 8 + int.from_bytes(frame[5:8], "big")
    header, body = frame[8:end], frame[end:]
    if not body or choices.random() < 0.5:
        header = mutate((header,), choices)
    else:
        body = mutate((body,), choices)
    rest = frame[4:5] + len(header).to_bytes(3, "big") + header + body
    return len(rest).to_bytes(4, "big") + rest
