"""Reads a log, a line (or a CSV record) at a time: its number, and its fields by name.

A record that can't be read is handed on as what it is, with its line number and the reason, and reading goes on behind
it: whether it may be passed over is not decided here. Memory is that of one record, which is bounded.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from conformance.importing.mapping import CSV, JSONL, Map, MapError
from conformance.importing.patterns import pattern
from specs.errors import UsageError
from specs.history.store import LONGEST_LINE
from specs.reading import near

STDIN = "-"
_PASSED_OVER = 32
"""So many times the longest line is passed over in search of a line's end, 128 MiB; a device has none."""
_GZIP = b"\x1f\x8b"

Fields = Mapping[str, Any]
"""A record's fields. Of CSV and text: their texts; of JSON: text, or a list of objects."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line, or several that a quoted text spans (`lines`). wrong: why it can't be read; then it has no fields.
    noise: text that is not in the form of a line. same: equal for lines of the same bytes.
    """

    number: int
    fields: Fields
    wrong: str | None = None
    noise: bool = False
    lines: int = 1
    same: int = 0


_NOTHING: Fields = {}


Lacks = Callable[[str, Sequence[str]], None]
"""Told of a log, and of the fields that the map asks for and that its header does not name."""


def records(
    paths: Sequence[str], form: str, mapping: Map, lacks: Lacks
) -> Iterator[tuple[str, Iterator[Record]]]:
    """For each log its name and its records.

    Each CSV is read by its own header. A field that one of them lacks and another one has is empty in its lines.

    Raises UsageError for a log that can't be opened, or that is damaged so that nobody knows what came after; MapError
    for a field that no header names.
    """
    known = _known_columns(paths, mapping) if form == CSV and len(paths) > 1 else frozenset()

    def csv_of(file: BinaryIO, mapping: Map, name: str) -> Iterator[Record]:
        return _csv(file, mapping, name, _Header(mapping, name, known, lacks))

    reads = {CSV: csv_of, JSONL: _jsonl}.get(form, _text)
    for path in paths:
        with _opened(path) as file:
            name = "standard input" if path == STDIN else path
            yield name, reads(file, mapping, name)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """The log's bytes, unpacked. Standard input stays open."""
    if path == STDIN:
        stdin = io.BufferedReader(cast(Any, sys.stdin.buffer))
        try:
            yield _unpacked(stdin)
        finally:
            stdin.detach()
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115
    except OSError as error:
        raise UsageError(f"the log {path} can't be read: {error.strerror or error}") from error
    with file:
        yield _unpacked(file)


def _unpacked(file: io.BufferedReader[Any]) -> BinaryIO:
    is_packed = file.peek(2)[:2] == _GZIP
    return cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_packed else file


def _lines(file: BinaryIO, mapping: Map, name: str) -> Iterator[tuple[int, str | None, str]]:
    """Number, text without its end, and why there is none. Raises UsageError where the rest can't be read."""
    number = 0
    while True:
        try:
            data = file.readline(LONGEST_LINE + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(
                f"{name} can't be read on after line {number}: {error}; what came after it is lost, so take the log "
                "from where it is whole, or cut it there on purpose"
            ) from error
        if not data:
            return
        number += 1
        if len(data) > LONGEST_LINE:
            for _ in range(_PASSED_OVER):
                if not data or data.endswith(b"\n"):
                    break
                data = file.readline(LONGEST_LINE)
            else:
                raise UsageError(f"{name} is no log: its line {number} does not end")
            yield number, None, f"is longer than {LONGEST_LINE >> 20} MiB"
            continue
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if number <= mapping.skip_lines:
            continue
        try:
            yield number, data.decode(mapping.encoding).rstrip("\r\n"), ""
        except UnicodeDecodeError:
            yield number, None, f"is not in {mapping.encoding}; the map may name another encoding"


# ---------------------------------------------------------------- CSV


class _Feeder:
    """Gives csv its lines and remembers which was the last one, and what could not be read on the way."""

    def __init__(self, file: BinaryIO, mapping: Map, name: str) -> None:
        self._lines = _lines(file, mapping, name)
        self.number = 0
        self.ended = False
        self.wrong: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[str]:
        for number, text, wrong in self._lines:
            self.number = number
            if text is None:
                self.wrong.append((number, wrong))
            else:
                yield text + "\n"
        self.ended = True


def _reader(feeder: _Feeder, mapping: Map) -> Iterator[list[str]]:
    csv.field_size_limit(LONGEST_LINE)
    return csv.reader(feeder, delimiter=mapping.delimiter, quotechar=mapping.quote, strict=True)


def _known_columns(paths: Sequence[str], mapping: Map) -> frozenset[str] | None:
    """The columns that any of the logs has; None where one of them can be read only once."""
    if mapping.fields:
        return frozenset(mapping.fields)
    if not all(Path(path).is_file() for path in paths if path != STDIN) or STDIN in paths:
        return None
    found: set[str] = set()
    for path in paths:
        with _opened(path) as file, suppress(csv.Error):
            rows = _reader(_Feeder(file, mapping, path), mapping)
            found.update(each.strip() for each in next(filter(None, rows), ()))
    return frozenset(found)


def _csv(file: BinaryIO, mapping: Map, name: str, check: _Header) -> Iterator[Record]:
    feeder = _Feeder(file, mapping, name)
    reader = _reader(feeder, mapping)
    header: Sequence[str] = mapping.fields
    width = len(header)
    if header:
        check(header)
    while True:
        first = feeder.number + 1
        try:
            row = next(reader)
        except StopIteration:
            yield from _told(feeder)
            return
        except csv.Error as error:
            if feeder.ended:
                raise UsageError(
                    f"{name}, line {first}: nothing closes a quote that is opened here, so that all up to the last "
                    f"line, {feeder.number}, would be one text; mend that line, or name another `quote` in the map"
                ) from error
            yield from _told(feeder)
            yield Record(first, _NOTHING, f"is no CSV: {error}", lines=feeder.number - first + 1)
            continue
        yield from _told(feeder)
        lines = max(1, feeder.number - first + 1)
        if not row:
            continue
        if not header:
            header = [each.strip() for each in row]
            width = len(header)
            check(header)
            continue
        if len(row) != width:
            why = f"has {len(row)} {'field' if len(row) == 1 else 'fields'}, and the header names {width}"
            yield Record(first, _NOTHING, why, lines=lines)
            continue
        yield Record(first, dict(zip(header, row, strict=True)), lines=lines, same=hash(tuple(row)))


def _told(feeder: _Feeder) -> Iterator[Record]:
    for number, wrong in feeder.wrong:
        yield Record(number, _NOTHING, wrong)
    feeder.wrong.clear()


@dataclass(frozen=True, slots=True)
class _Header:
    """Checks a log's header. elsewhere: the columns that its further logs have; None where nobody knows them yet."""

    mapping: Map
    name: str
    elsewhere: frozenset[str] | None
    lacks: Lacks

    def __call__(self, header: Sequence[str]) -> None:
        double = sorted({each for each in header if header.count(each) > 1})
        if double:
            raise UsageError(
                f"{self.name} has two columns of the name {double[0]!r}: name all of them in the map (fields = [...], "
                "and skip_lines = 1)"
            )
        lacking = {field: where for field, where in asked_for(self.mapping) if field not in header}
        for field, where in lacking.items():
            if self.elsewhere is not None and field not in self.elsewhere:
                columns = ", ".join(header)
                none = "no log has it: " if self.elsewhere else ""
                raise MapError(
                    f"the map asks for the field {field!r} ({where}), and {none}{self.name} has the columns {columns}"
                    f"{near(field, {*header, *self.elsewhere})}"
                )
        if lacking:
            self.lacks(self.name, tuple(lacking))


def asked_for(mapping: Map) -> Iterator[tuple[str, str]]:
    """The fields of a log that the map asks for, but for those that its regular expressions make; each with where."""
    made = _made(mapping)
    for event in mapping.event:
        asked: list[tuple[str | None, str]] = [
            (event.time or (None if event.begin else mapping.time), "time"),
            (event.begin, "begin"),
            (event.end, "end"),
            (None if event.took is None else event.took.field, "took"),
            (None if event.each is None else event.each.field, "each"),
            *((name, "when") for name in event.when),
            *((name, "pair") for name in event.pair),
            *((source.field, f"columns.{name}") for name, source in event.columns.items()),
            (mapping.clock, "clock"),
        ]
        if event.match is not None:
            asked.append((event.message or mapping.message, "message"))
        for field, where in asked:
            if field is not None and field not in made:
                yield field, f"{event.name}, {where}"


def _made(mapping: Map) -> frozenset[str]:
    patterns = [event.match for event in mapping.event]
    patterns += [event.each.match for event in mapping.event if event.each is not None]
    return frozenset(
        name for each in patterns if each is not None for name in pattern(each).groupindex
    )


# ---------------------------------------------------------------- JSON lines


def _jsonl(file: BinaryIO, mapping: Map, name: str) -> Iterator[Record]:
    keys = _Keys(mapping)
    # Numbers stay as they are written: a time of 1609057188.357 must not be rounded on its way.
    decode = json.JSONDecoder(
        object_pairs_hook=keys.object, parse_float=str, parse_int=str, parse_constant=str
    ).decode
    for number, text, wrong in _lines(file, mapping, name):
        if text is None:
            yield Record(number, _NOTHING, wrong)
            continue
        if not text.strip():
            continue
        keys.twice = None
        try:
            data = decode(text.strip())
        except (ValueError, RecursionError) as error:
            yield Record(number, _NOTHING, f"is no JSON: {_first_line(error)}{_list_hint(text)}")
            continue
        if keys.twice is not None:
            yield Record(number, _NOTHING, f"tells {keys.twice!r} twice, and not the same")
        elif isinstance(data, dict):
            yield Record(number, data, same=hash(text))
        else:
            yield Record(number, _NOTHING, f"is no JSON object{_list_hint(text)}")


class _Keys:
    """Makes JSON objects, and remembers a key that the map reads and that an object has twice: nobody knows which of
    its two values is meant. twice: that key, of the last line."""

    def __init__(self, mapping: Map) -> None:
        asked = [field for field, _where in asked_for(mapping)]
        self._read = {part for field in asked for part in (field, *field.split("."))}
        self.twice: str | None = None

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            for name, value in pairs:
                if name in self._read and value != found[name]:
                    self.twice = name
        return found


def _list_hint(text: str) -> str:
    lines = "; of a file that is one list `jq -c '.[]'` makes a line for each"
    return lines if text.lstrip().startswith("[") else ""


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


# ---------------------------------------------------------------- text


def _text(file: BinaryIO, mapping: Map, name: str) -> Iterator[Record]:
    patterns = [pattern(each) for each in mapping.line]
    for number, text, wrong in _lines(file, mapping, name):
        if text is None:
            yield Record(number, _NOTHING, wrong)
            continue
        try:
            found = next(filter(None, (each.match(text) for each in patterns)), None)
        except UnicodeEncodeError:
            yield Record(number, _NOTHING, "holds half a character")
            continue
        if found is None:
            yield Record(number, _NOTHING, noise=True)
        else:
            yield Record(number, found.groupdict(), same=hash(text))


def field_of(fields: Fields, name: str) -> Any:
    """A field by its name; in JSON also inside of others, as `kafka.partition` or `records.0.offset`."""
    if name in fields:
        return fields[name]
    found: Any = fields
    for part in name.split("."):
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def trimmed(fields: Fields, name: str) -> str | None:
    """A field's text without the blanks around it, by which a table is padded; None as for `text_of`."""
    value = fields.get(name)
    if type(value) is str:
        return value.strip()  # nearly always
    text = text_of(field_of(fields, name))
    return None if text is None else text.strip()


def text_of(value: Any) -> str | None:
    """A field's value as text; None for nothing, and for what is no single value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return None
