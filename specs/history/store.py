"""A history as a folder: `run.json`, `journal/`, `history/*.parquet` or `*.jsonl`, `verdict.json`.

`open_history` reads whatever is there: the compacted files, or else the journal. A folder that is no history, a
torn file or an unknown version is one clear `HistoryError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specs.errors import HistoryError
from specs.history.columns import COLUMNS, HISTORY_VERSION, LARGEST, NAMES, SMALLEST
from specs.history.journal import assemble, read_journal
from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo, read_runinfo, write_runinfo
from specs.vocabulary import Kind, Level, Outcome

VERSION_KEY = b"inorder.history"
BATCH_ROWS = 1 << 16


def arrow_schema() -> pa.Schema:
    """The Arrow schema of history v1, made from the columns; its metadata carries the version."""
    types = {"string": pa.string(), "int64": pa.int64()}
    fields = [
        pa.field(
            column.name,
            pa.dictionary(pa.int32(), pa.string()) if column.dictionary else types[column.type],
            nullable=not column.required,
        )
        for column in COLUMNS
    ]
    return pa.schema(fields, metadata={VERSION_KEY: str(HISTORY_VERSION).encode()})


@dataclass(frozen=True)
class History:
    """An opened history. cut: a recorder died before it closed its journal; `why_cut` names the journals."""

    folder: Path
    info: RunInfo
    parquet: tuple[Path, ...] = ()
    loaded: tuple[Row, ...] = ()
    why_cut: tuple[str, ...] = ()
    verdict: dict[str, Any] | None = field(default=None, repr=False)

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
    return bool(metadata.get(b"inorder.order") == b"seq")


def _read_parquet(path: Path) -> Iterator[Row]:
    """Rows of one file by (run, seq_begin); a file in another layout is sorted in memory first."""
    try:
        if _ordered_or_sorted(path):
            reader = pq.ParquetFile(path)
            for batch in reader.iter_batches(batch_size=BATCH_ROWS, columns=list(NAMES)):
                yield from rows_of_table(pa.Table.from_batches([batch]))
        else:
            table = pq.read_table(path, columns=list(NAMES))
            order = _by_seq(table)
            for start in range(0, table.num_rows, BATCH_ROWS):
                yield from rows_of_table(table.take(order.slice(start, BATCH_ROWS)))
    except (pa.ArrowInvalid, pa.ArrowException, OSError, KeyError) as error:
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
    """The rows of an Arrow table of history v1, in its order. Raises HistoryError for an unknown word."""
    for column in COLUMNS:
        if column.required and table.column(column.name).null_count:
            raise HistoryError(f"a history holds a row without {column.name}")
    lists = [table.column(name).to_pylist() for name in NAMES]
    kind, level, outcome = NAMES.index("kind"), NAMES.index("level"), NAMES.index("outcome")
    try:
        lists[kind] = [_KINDS[word] for word in lists[kind]]
        lists[level] = [_LEVELS[word] for word in lists[level]]
        lists[outcome] = [_OUTCOMES[word] for word in lists[outcome]]
    except KeyError as error:
        raise HistoryError(f"a history holds the unknown word {error}") from error
    yield from map(Row._make, zip(*lists, strict=True))


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def check_parquet(path: Path) -> int:
    """The file's rows, read from its footer. Raises HistoryError for a torn file or another schema."""
    try:
        reader = pq.ParquetFile(path)
    except (pa.ArrowInvalid, pa.ArrowException, OSError) as error:
        raise HistoryError(
            f"{path} is torn or no Parquet file ({_first_line(error)}); remove it or record the run again"
        ) from error
    schema = reader.schema_arrow
    version = (schema.metadata or {}).get(VERSION_KEY)
    if version != str(HISTORY_VERSION).encode():
        raise HistoryError(
            f"{path} is history version {version.decode() if version else 'none'}; this version reads {HISTORY_VERSION}"
        )
    missing = [name for name in NAMES if name not in schema.names]
    if missing:
        raise HistoryError(f"{path} lacks the columns {', '.join(missing)}")
    unknown = [name for name in schema.names if name not in NAMES]
    if unknown:
        raise HistoryError(f"{path} has the unknown columns {', '.join(unknown)}")
    for column in COLUMNS:
        found = schema.field(column.name).type
        value = found.value_type if pa.types.is_dictionary(found) else found
        if value not in _ARROW_TYPES[column.type]:
            raise HistoryError(f"{path} has {column.name} as {found}; it must be {column.type}")
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
            except (pa.ArrowException, OSError) as error:
                raise HistoryError(
                    f"{path} can't be read as Parquet: {_first_line(error)}"
                ) from error
    return count


_ARROW_TYPES = {"string": (pa.string(), pa.large_string()), "int64": (pa.int64(),)}
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
    row = make_row(**data)
    for column, value in zip(COLUMNS, row, strict=True):
        if value is None:
            continue
        if not isinstance(value, _PYTHON_TYPES[column.type]) or isinstance(value, bool):
            raise ValueError(f"{column.name} must be {column.type}, not {value!r}")
        if isinstance(value, int) and not SMALLEST <= value <= LARGEST:
            raise ValueError(f"{column.name} must be {column.type}, {value} is too large")
    return row


def rows_of_lines(data: bytes, where: str) -> list[Row]:
    """The rows of JSON lines, as they stand there. Raises HistoryError with the line's number."""
    rows: list[Row] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(_checked(json.loads(line)))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise HistoryError(
                f"{where} line {number} is no history row: {_first_line(error)}"
            ) from error
    return rows


def open_history(folder: Path | str) -> History:
    """Open a history folder. Raises HistoryError (exit 64) with one sentence when that can't be done."""
    folder = Path(folder)
    if not folder.is_dir():
        raise HistoryError(f"{folder} is no history: there is no such folder")
    info = read_runinfo(folder)
    journals = sorted((folder / "journal").glob("*.jsonl"))
    files = sorted((folder / "history").glob("*.parquet"))
    text = sorted((folder / "history").glob("*.jsonl"))
    verdict = _read_verdict(folder / "verdict.json")
    if files:
        for path in files:
            check_parquet(path)
        return History(
            folder, info, parquet=tuple(files), why_cut=_cut_marks(folder), verdict=verdict
        )
    if text:
        found = [row for path in text for row in rows_of_lines(path.read_bytes(), str(path))]
        rows = sorted(found, key=lambda row: (row.run, row.seq_begin))
        return History(
            folder, info, loaded=tuple(rows), why_cut=_cut_marks(folder), verdict=verdict
        )
    if journals:
        read = [read_journal(path) for path in journals]
        why = tuple(f"{journal.path.name} has no end" for journal in read if journal.cut)
        return History(
            folder, info, loaded=tuple(assemble(info.run, read)), why_cut=why, verdict=verdict
        )
    raise HistoryError(f"{folder} is no history: it has neither history/ files nor a journal/")


def _read_verdict(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise HistoryError(
            f"{path} is not JSON: {_first_line(error)}; remove it to judge the history anew"
        ) from error
    if not isinstance(data, dict):
        raise HistoryError(f"{path} is not a JSON object; remove it to judge the history anew")
    return data


def _cut_marks(folder: Path) -> tuple[str, ...]:
    path = folder / "history" / "cut.txt"
    return tuple(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else ()


def rows_to_table(rows: Iterable[Row]) -> pa.Table:
    """Rows as an Arrow table in the schema of history v1."""
    schema = arrow_schema()
    columns: list[Any] = list(zip(*rows, strict=True)) or [[] for _ in NAMES]
    arrays = [
        pa.array(list(values), type=field.type)
        for values, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(
        arrays, schema=schema.with_metadata({**schema.metadata, b"inorder.order": b"seq"})
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
    if why_cut:
        (folder / "history" / "cut.txt").write_text("\n".join(why_cut) + "\n", encoding="utf-8")
    write_runinfo(folder, info)
    return open_history(folder)


def compact_journal(folder: Path) -> History:
    """Turn `journal/` into `history/`: the journal stays, nothing recorded is lost."""
    history = open_history(folder)
    return write_history(folder, history.info, list(history.rows()), why_cut=history.why_cut)
