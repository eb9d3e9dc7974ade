"""Reads JSON and TOML that somebody else wrote. What is neither, is too large or nests too deep is one sentence.

Every reader of the project comes here, since Python's own raise more than they say: `RecursionError` for deep nesting,
a bare `ValueError` for a number of 5,000 digits; they take `NaN` and half of a character, which no writer of a report
can write; and a TOML key of many dots costs the square of its length.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from specs.errors import InorderError, UsageError

DEPTH_MAX = 100
"""Levels of lists and objects. A document of ours has about ten."""
JSON_BYTES_MAX = 256 << 20
"""The verdict on a hard search has some MiB."""
TOML_BYTES_MAX = 1 << 20
"""What people write by hand has some KiB."""

_LARGE = re.compile(r"\d{19}")
"""What may be a number beyond 64 bits."""
_HALF = re.compile(r"[\ud800-\udfff]")
_DOTTED = re.compile(
    r"""(?<![\w"'-])(?:(?:"[^"\n]*+"|'[^'\n]*+'|[\w-]++)[ \t]*+\.[ \t]*+)"""
    f"{{{DEPTH_MAX}}}"
)


class NotReadable(ValueError):
    """Text that is no document. The message follows the document's name: "is not JSON: ..."."""


def from_json(data: str | bytes) -> Any:
    """The value that a JSON text says. Raises NotReadable."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        found = _JSON.decode(text)
    except RecursionError:
        raise NotReadable(_TOO_DEEP) from None
    except UnicodeDecodeError as error:
        raise NotReadable(f"is not in UTF-8, at byte {error.start}") from error
    except ValueError as error:
        raise NotReadable(f"is not JSON: {error}") from error
    # Counting costs nothing; only what could be too deep, or hold half a character, is walked through.
    if text.count("[") + text.count("{") > DEPTH_MAX:
        _bound(found)
    if "\\u" in text or _LARGE.search(text):
        _refuse_unwritable(found)
    return found


def from_toml(text: str) -> dict[str, Any]:
    """The tables that a TOML text says. Raises NotReadable."""
    if len(text) > TOML_BYTES_MAX:
        raise NotReadable(_too_large(TOML_BYTES_MAX))
    if _DOTTED.search(text):
        raise NotReadable(_TOO_DEEP)
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise NotReadable(_TOO_DEEP) from None
    except ValueError as error:
        raise NotReadable(f"is no TOML: {error}") from error
    _bound(found)
    if _LARGE.search(text):
        _refuse_unwritable(found)
    return found


def json_in(
    path: Path, *, error: type[InorderError] = UsageError, name: str = "", mend: str = ""
) -> Any:
    """The value in a JSON file. Raises `error` with one sentence; mend: what it says besides.

    name: what the file is called in that sentence, its path if not given.
    """
    called = name or str(path)
    try:
        return from_json(_bytes(path, JSON_BYTES_MAX))
    except OSError as why:
        raise error(f"{called} can't be read: {why.strerror or why}") from why
    except NotReadable as why:
        raise error(f"{called} {why}{mend}") from why


def toml_in(
    path: Path, *, error: type[InorderError] = UsageError, name: str = ""
) -> dict[str, Any]:
    """As `json_in`, of a TOML file."""
    return from_toml_of(text_in(path, error=error, name=name), name or str(path), error)


def from_toml_of(text: str, name: str, error: type[InorderError]) -> dict[str, Any]:
    """As `from_toml`; raises `error` with one sentence, which begins with the name."""
    try:
        return from_toml(text)
    except NotReadable as why:
        raise error(f"{name} {why}") from why


def text_in(path: Path, *, error: type[InorderError] = UsageError, name: str = "") -> str:
    """What a person wrote in a file, in UTF-8. Raises `error` with one sentence."""
    called = name or str(path)
    try:
        return _bytes(path, TOML_BYTES_MAX).decode("utf-8")
    except OSError as why:
        raise error(f"{called} can't be read: {why.strerror or why}") from why
    except UnicodeDecodeError as why:
        raise error(f"{called} can't be read: it is not in UTF-8, at byte {why.start}") from why
    except NotReadable as why:
        raise error(f"{called} {why}") from why


def _bytes(path: Path, largest: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise NotReadable(_too_large(largest))
    return data


def _too_large(largest: int) -> str:
    return f"is larger than {largest >> 20} MiB"


_TOO_DEEP = f"nests deeper than {DEPTH_MAX} levels"


def _bound(value: Any) -> None:
    """Raises NotReadable for what nests too deep. No recursion: that is what it is about."""
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            inner for each in level for inner in _parts(each) if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise NotReadable(_TOO_DEEP)


def _refuse_unwritable(value: Any) -> None:
    """Raises NotReadable for one half of a surrogate pair, which UTF-8 can't write, and for numbers beyond 64 bits."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            if _HALF.search(each):
                raise NotReadable("holds one half of a character (a surrogate without its pair)")
        elif isinstance(each, int):
            if not -(1 << 63) <= each < 1 << 63:
                raise NotReadable(f"holds {each}, which is too large: numbers have 64 bits")
        elif isinstance(each, dict):
            left += each
            left += each.values()
        elif isinstance(each, list):
            left += each


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits} is too large")
    return number


_JSON = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
