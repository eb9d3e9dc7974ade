"""A history that is one file, or comes by a pipe: text notation, JSON lines or Parquet, told apart by its content.

Such a history has no description of its own beside its rows. Text says it in its `config` lines. For JSON lines and
Parquet a `run.json` in the same folder is used; without one, nobody knows who else was at work and what the clients
were told: the world is open (what is not in the rows may have happened) and the configuration the default. The history
then has a note that says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from specs.errors import HistoryError
from specs.history.row import Row
from specs.history.runinfo import RunInfo, is_described, read_runinfo
from specs.history.store import (
    History,
    check_parquet,
    first_run,
    lines_in,
    open_history,
    rows_of_lines,
    undescribed,
)
from specs.history.text import parse_history

STDIN = "-"
STDIN_NAME = "standard input"
_PARQUET_MAGIC = b"PAR1"
_PARQUET_SUFFIX = ".parquet"


def open_any(source: Path, stdin: BinaryIO) -> History:
    """Open a history's folder, a file with its rows, or `-`. Raises HistoryError (exit 64) with one sentence.

    stdin: read for `-` alone.
    """
    if str(source) == STDIN:
        return _from_stream(stdin, STDIN_NAME, None)
    try:
        if source.is_dir():
            return open_history(source)
        if not source.exists():
            raise HistoryError(f"{source} is no history: there is no such folder or file")
        if not source.is_file():  # a pipe, as a shell's <(...)
            return _read(source, None)
        return _from_file(source)
    except OSError as error:
        raise HistoryError(f"{source} can't be read: {error.strerror or error}") from error


def _from_file(path: Path) -> History:
    whole = path.parent.parent
    if path.parent.name == "history" and is_described(whole):
        raise HistoryError(f"{path} is a part of the history {whole}; give that folder")
    with path.open("rb") as file:
        is_parquet = file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    if not is_parquet and path.suffix != _PARQUET_SUFFIX:
        return _read(path, path.parent)
    if not check_parquet(path):
        raise HistoryError(f"{path} holds no events: there is nothing to judge")
    notes: tuple[str, ...] = ()
    info = _beside(path.parent)
    if info is None:
        info, notes = undescribed(first_run((path,)), str(path))
    return History(path.parent, info, parquet=(path,), notes=notes, is_a_file=True)


def _read(path: Path, folder: Path | None) -> History:
    with path.open("rb") as file:
        return _from_stream(file, str(path), folder)


def _from_stream(file: BinaryIO, name: str, folder: Path | None) -> History:
    """JSON lines or text, as it comes. folder: where the file lies, and maybe a run.json; None: it comes by a pipe."""
    lines = _decoded(lines_in(file, name), name)
    info: RunInfo | None
    rows: list[Row]
    head = ""
    blank = 0
    for head in lines:
        if head.strip():
            break
        blank += 1
    whole = itertools.chain(itertools.repeat("", blank), (head,), lines)
    if head.lstrip()[:1] in ("{", "["):
        rows = rows_of_lines(whole, name)
        info = None if folder is None else _beside(folder)
        rows.sort(key=lambda row: (row.run, row.seq_begin))
    else:
        try:
            info, rows = parse_history(
                whole, run="stdin" if name == STDIN_NAME else Path(name).stem
            )
        except HistoryError as error:
            raise HistoryError(f"{name}, {error}") from error
    if not rows:
        raise HistoryError(f"{name} holds no events: there is nothing to judge")
    notes: tuple[str, ...] = ()
    if info is None:
        info, notes = undescribed(rows[0].run, name)
    return History(folder or Path(), info, loaded=tuple(rows), notes=notes, is_a_file=True)


def _decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Each as text. Raises HistoryError for what is none."""
    for number, line in enumerate(lines):
        if not number and line.startswith(_PARQUET_MAGIC):
            raise HistoryError(f"{name} is Parquet, which is read from its end: give it as a file")
        try:
            yield line.decode("utf-8" if number else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise HistoryError(
                f"{name} is no history: neither Parquet nor text in UTF-8 ({error.reason})"
            ) from error


def _beside(folder: Path) -> RunInfo | None:
    return read_runinfo(folder) if is_described(folder) else None
