"""A history as a folder: `run.json`, `journal/`, `history/*.parquet` or `*.jsonl`, `verdict.json`.

`open_history` reads whatever is there: the compacted files, or else the journal, or else rows that lie in the folder
itself, as Spark leaves them (`part-*.parquet`, `part-*.json`). A folder that is no history, a torn file or an unknown
version is one clear `HistoryError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specs.documents import from_json, json_in
from specs.errors import HistoryError
from specs.history.arrow import BATCH_ROWS, ORDER_KEY, arrow_schema, check_schema, tables
from specs.history.columns import COLUMNS, LARGEST, NAMES, SMALLEST
from specs.history.journal import assemble, read_journal
from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo, is_described, read_runinfo, write_runinfo
from specs.vocabulary import Kind, Level, Outcome


@dataclass(frozen=True)
class History:
    """An opened history. cut: a recorder died before it closed its journal, or lines of a log are not in it; `why_cut`
    names the journals, and counts the lines.

    notes: what was assumed about it because nothing says so, and what can't be seen in it, a sentence each, for whoever
    asked. is_a_file: it is a
    file of rows (or a pipe), and no run's folder: what else lies in `folder` may be anybody's. uri: where it lies, if
    that is another file system: `folder` then holds a copy, or nothing but the description, and `events` says how many
    rows there are.
    """

    folder: Path
    info: RunInfo
    parquet: tuple[Path, ...] = ()
    loaded: tuple[Row, ...] = ()
    why_cut: tuple[str, ...] = ()
    verdict: dict[str, Any] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    is_a_file: bool = False
    uri: str = ""
    events: int = 0

    @property
    def cut(self) -> bool:
        return bool(self.why_cut)

    def rows(self) -> Iterator[Row]:
        """All rows by (run, seq_begin). Parquet files must each be in that order and not overlap, or small
        enough to sort: files written by `write_history` and `inorder generate` are in order."""
        if not self.parquet:
            yield from self.loaded
            return
        yield from _merge(self.parquet)


def _merge(paths: Sequence[Path]) -> Iterator[Row]:
    import heapq

    yield from heapq.merge(
        *(_read_parquet(path) for path in paths), key=lambda row: (row.run, row.seq_begin)
    )


def _ordered_or_sorted(path: Path) -> bool:
    metadata = pq.read_schema(path).metadata or {}
    return bool(metadata.get(ORDER_KEY) == b"seq")


def _read_parquet(path: Path) -> Iterator[Row]:
    """Rows of one file by (run, seq_begin); a file in another layout is sorted in memory first."""
    try:
        if _ordered_or_sorted(path):
            for table in tables(path):
                yield from rows_of_table(table)
        else:
            table = pa.concat_tables([arrow_schema().empty_table(), *tables(path)])
            order = _by_seq(table)
            for start in range(0, table.num_rows, BATCH_ROWS):
                yield from rows_of_table(table.take(order.slice(start, BATCH_ROWS)))
    except UNREADABLE as error:
        raise HistoryError(f"{path} can't be read as Parquet: {_first_line(error)}") from error


def _by_seq(table: pa.Table) -> pa.Array:
    """The order of the table's rows by (run, seq_begin). Arrow sorts no dictionaries, so the run is spelt out."""
    keys = pa.table(
        {"run": table.column("run").cast(pa.string()), "seq_begin": table.column("seq_begin")}
    )
    return pc.sort_indices(keys, sort_keys=[("run", "ascending"), ("seq_begin", "ascending")])


_KINDS = {kind.value: kind for kind in Kind}
_LEVELS = {level.value: level for level in Level}
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


def rows_of_table(table: pa.Table) -> Iterator[Row]:
    """The rows of an Arrow table of a history, in its order. Raises HistoryError for an unknown word."""
    for column in COLUMNS:
        if column.required and table.column(column.name).null_count:
            raise HistoryError(f"a history holds a row without {column.name}")
    lists = [_values(table.column(name)) for name in NAMES]
    kind, level, outcome = NAMES.index("kind"), NAMES.index("level"), NAMES.index("outcome")
    try:
        lists[kind] = [_KINDS[word] for word in lists[kind]]
        lists[level] = [_LEVELS[word] for word in lists[level]]
        lists[outcome] = [_OUTCOMES[word] for word in lists[outcome]]
    except KeyError as error:
        raise HistoryError(f"a history holds the unknown word {error}") from error
    yield from map(Row._make, zip(*lists, strict=True))


def _values(column: Any) -> Any:
    """A column's values; many a column holds none in a whole history."""
    empty = column.null_count == len(column)
    return [None] * len(column) if empty else column.to_pylist()


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def check_parquet(path: Path) -> int:
    """The file's rows, read from its footer. Raises HistoryError for a torn file or one that is no history's."""
    try:
        reader = pq.ParquetFile(path)
    except UNREADABLE as error:
        raise HistoryError(
            f"{path} is torn or no Parquet file ({_first_line(error)}); remove it or record the run again"
        ) from error
    check_schema(reader.schema_arrow, path)
    for column in COLUMNS:
        if column.required and (count := _nulls(path, reader, column.name)):
            raise HistoryError(
                f"{path} holds {count} rows without {column.name}, which every row must have"
            )
    return int(reader.metadata.num_rows)


def _nulls(path: Path, reader: pq.ParquetFile, name: str) -> int:
    """How many rows have no value in a column: from the footer, where the writer counted them there."""
    index = reader.schema_arrow.get_field_index(name)
    count = 0
    for number in range(reader.metadata.num_row_groups):
        statistics = reader.metadata.row_group(number).column(index).statistics
        if statistics is not None and statistics.has_null_count:
            count += statistics.null_count
        else:
            try:
                count += reader.read_row_group(number, columns=[name]).column(0).null_count
            except UNREADABLE as error:
                raise HistoryError(
                    f"{path} can't be read as Parquet: {_first_line(error)}"
                ) from error
    return count


_PYTHON_TYPES = {"string": str, "int64": int}


def _checked(data: Any) -> Row:
    """A row from JSON. Raises ValueError or KeyError for what is none."""
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    lacking = [
        column.name for column in COLUMNS if column.required and data.get(column.name) is None
    ]
    if lacking:  # before make_row, which has defaults for histories that are written by hand
        raise ValueError(f"it lacks {', '.join(lacking)}")
    row = make_row(**{name: _whole(name, value) for name, value in data.items()})
    for column, value in zip(COLUMNS, row, strict=True):
        if value is None:
            continue
        if not isinstance(value, _PYTHON_TYPES[column.type]) or isinstance(value, bool):
            raise ValueError(f"{column.name} must be {column.type}, not {value!r}")
        if isinstance(value, int) and not SMALLEST <= value <= LARGEST:
            raise ValueError(f"{column.name} must be {column.type}, {value} is too large")
    return row


def _whole(name: str, value: Any) -> Any:
    """Where a column of numbers has gaps, pandas writes 17 as 17.0."""
    return int(value) if name in _WHOLE and type(value) is float and value.is_integer() else value


_WHOLE = frozenset(column.name for column in COLUMNS if column.type == "int64")


UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError)
"""What Arrow raises for a file that it can't make anything of, its names among them, which need not be text."""
LONGEST_LINE = 4 << 20
"""Bytes of a line: a longer one is no line of a history or a log, but a file that is none."""


def lines_in(file: BinaryIO, where: str) -> Iterator[bytes]:
    """The lines of a file. Raises HistoryError for one that is too long, before it has filled the memory."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise HistoryError(
                f"{where} is no history: its line {number} is longer than {LONGEST_LINE >> 20} MiB"
            )
        yield line


def _rows_in(path: Path) -> list[Row]:
    with path.open("rb") as file:
        return rows_of_lines(lines_in(file, str(path)), str(path))


def rows_of_lines(lines: Iterable[bytes | str], where: str) -> list[Row]:
    """The rows of JSON lines, as they stand there. Raises HistoryError with the line's number."""
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(_checked(from_json(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise HistoryError(
                f"{where} line {number} is no history row: {_first_line(error)}"
            ) from error
    return rows


def open_history(folder: Path | str) -> History:
    """Open a history folder. Raises HistoryError (exit 64) with one sentence when that can't be done."""
    folder = Path(folder)
    if not folder.is_dir():
        raise HistoryError(f"{folder} is no history: there is no such folder")
    if folder.name == "history" and is_described(folder.parent):
        raise HistoryError(f"{folder} is a part of the history {folder.parent}; give that folder")
    info = read_runinfo(folder) if is_described(folder) else None
    journals = sorted((folder / "journal").glob("*.jsonl"))
    parts = _parts(folder / "history") or (None if journals else _parts(folder))
    if parts is None and info is None:
        raise HistoryError(f"{folder} is no history: it has no run.json")
    verdict = _read_verdict(folder / "verdict.json")
    why_cut = _cut_marks(folder)
    if parts is not None and parts[0].suffix == ".parquet":
        rows = sum([check_parquet(path) for path in parts])
        notes = () if info is None else blind_spots(info)
        if info is None:
            info, notes = undescribed(first_run(parts) if rows else "", str(folder))
        return History(folder, info, tuple(parts), (), why_cut, verdict, notes)
    if parts is not None:
        found = [row for path in parts for row in _rows_in(path)]
        found.sort(key=lambda row: (row.run, row.seq_begin))
        notes = ()
        if info is None:
            info, notes = undescribed(found[0].run if found else "", str(folder))
        return History(folder, info, (), tuple(found), why_cut, verdict, notes)
    if journals and info is not None:
        read = [read_journal(path) for path in journals]
        why = tuple(f"{journal.path.name} has no end" for journal in read if journal.cut)
        loaded = tuple(assemble(info.run, read))
        return History(folder, info, loaded=loaded, why_cut=why, verdict=verdict)
    raise HistoryError(f"{folder} is no history: it has neither history/ files nor a journal/")


def _parts(folder: Path) -> list[Path] | None:
    """The files with a history's rows: Parquet, or else JSON lines. What Spark hides (`_SUCCESS`, `.crc`) is none."""
    if not folder.is_dir():
        return None
    seen = [path for path in sorted(folder.iterdir()) if path.name[0] not in "._"]
    parquet = [path for path in seen if path.suffix == ".parquet"]
    return parquet or [path for path in seen if path.suffix == ".jsonl" or _has_rows(path)] or None


def _has_rows(path: Path) -> bool:
    """Is it JSON that begins with a row? `run.json`, a plan or a verdict may lie beside."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"seq_begin"' in file.readline(1 << 16)


def undescribed(run: str, name: str) -> tuple[RunInfo, tuple[str, ...]]:
    """What is assumed of rows that no run.json describes, and the sentence that says so.

    Raises HistoryError where there are none: then nothing at all is known.
    """
    if not run:
        raise HistoryError(f"{name} holds no events: there is nothing to judge")
    note = (
        f"no run.json describes {name}: others may have been at work besides (an open world), and the configuration "
        f"is taken to be the usual one"
    )
    return RunInfo(run=run, closed_world=False), (note,)


def blind_spots(info: RunInfo) -> tuple[str, ...]:
    """What no verdict on a history can show, as its recorder does not tell it, a sentence each."""
    told = {kind for kinds in (info.records or {}).values() for kind in kinds}
    if Kind.DELIVER not in told or Kind.SEND in told:
        return ()
    return (
        "sends are not told, so that a message which nobody was given is not missed: nobody knows what lay between a "
        "stored offset and the first delivery behind it",
    )


def first_run(paths: Sequence[Path]) -> str:
    """The name of the run in the first row of Parquet files; empty where there is no row."""
    for path in paths:
        try:
            batch = next(pq.ParquetFile(path).iter_batches(batch_size=1, columns=["run"]), None)
        except UNREADABLE as error:
            raise HistoryError(f"{path} can't be read as Parquet: {_first_line(error)}") from error
        if batch is not None and batch.num_rows:
            return str(batch.column(0)[0].as_py())
    return ""


def _read_verdict(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    data = json_in(path, error=HistoryError, mend="; remove it to judge the history anew")
    if not isinstance(data, dict):
        raise HistoryError(f"{path} is not a JSON object; remove it to judge the history anew")
    return data


def _cut_marks(folder: Path) -> tuple[str, ...]:
    path = folder / "history" / "cut.txt"
    return tuple(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else ()


def write_cut(folder: Path, why: Sequence[str]) -> None:
    """Say in a history's folder what it lacks, a sentence each; nothing where there is none."""
    if why:
        (folder / "history" / "cut.txt").write_text("\n".join(why) + "\n", encoding="utf-8")


def rows_to_table(rows: Iterable[Row]) -> pa.Table:
    """Rows as an Arrow table in the schema of a history."""
    schema = arrow_schema()
    columns: list[Any] = list(zip(*rows, strict=True)) or [[] for _ in NAMES]
    arrays = [
        pa.array(list(values), type=field.type)
        for values, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(
        arrays, schema=schema.with_metadata({**schema.metadata, ORDER_KEY: b"seq"})
    )


def write_history(
    folder: Path,
    info: RunInfo,
    rows: Sequence[Row],
    *,
    why_cut: Sequence[str] = (),
    as_text: bool = False,
) -> History:
    """Write run.json and the rows (by seq_begin) as Parquet, or as JSON lines with `as_text`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "history").mkdir(exist_ok=True)
    if as_text:
        lines = [
            json.dumps({k: v for k, v in row._asdict().items() if v is not None}, sort_keys=True)
            for row in rows
        ]
        (folder / "history" / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        path = folder / "history" / "part-0.parquet"
        temporary = path.with_suffix(".part")
        pq.write_table(rows_to_table(rows), temporary, compression="zstd")
        temporary.replace(path)
    write_cut(folder, why_cut)
    write_runinfo(folder, info)
    return open_history(folder)


def compact_journal(folder: Path) -> History:
    """Turn `journal/` into `history/`: the journal stays, nothing recorded is lost."""
    history = open_history(folder)
    return write_history(folder, history.info, list(history.rows()), why_cut=history.why_cut)
