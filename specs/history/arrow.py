"""Tables of a history: the schema that we write, and what others' Parquet may look like and is read as the same.

pandas and Spark write no key into the footer, order the columns as they please, leave out those they have nothing for,
and have types of their own: smaller integers, a number with a point where a column has gaps, `large_string`, plain
strings or dictionaries, no type at all for a column of nulls. All of it is read, and nothing is guessed: a column that
every row needs must be there, an unknown one is refused (it may be a misspelt one, which would be missing), and a
number with a point must be whole.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Container, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specs.errors import HistoryError
from specs.history.columns import COLUMNS, HISTORY_VERSION, NAMES, Column

VERSION_KEY = b"inorder.history"
ORDER_KEY = b"inorder.order"
BATCH_ROWS = 1 << 16
_INDEX_OF_PANDAS = "__index_level_"
_ARROW = {"string": pa.string(), "int64": pa.int64()}


def arrow_schema() -> pa.Schema:
    """The Arrow schema of a history, made from the columns; its metadata carries the version."""
    fields = [
        pa.field(column.name, _type_of(column), nullable=not column.required) for column in COLUMNS
    ]
    return pa.schema(fields, metadata={VERSION_KEY: str(HISTORY_VERSION).encode()})


def _type_of(column: Column) -> Any:
    return pa.dictionary(pa.int32(), pa.string()) if column.dictionary else _ARROW[column.type]


def is_ours(schema: pa.Schema) -> bool:
    """Has it every column, in a type that needs no change but the spelling out of a dictionary?"""
    return set(schema.names) == set(NAMES) and all(
        _spelt(schema.field(column.name).type) == _ARROW[column.type] for column in COLUMNS
    )


def check_schema(schema: pa.Schema, path: Path) -> None:
    """Raises HistoryError for a newer version, and for columns that are unknown, missing or of a wrong type."""
    version = (schema.metadata or {}).get(VERSION_KEY)
    if version is not None and version not in _VERSIONS:
        raise HistoryError(
            f"{path} is history version {version.decode(errors='replace')}; "
            f"this version reads 1 to {HISTORY_VERSION}"
        )
    double = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if double:
        raise HistoryError(f"{path} has the column {double[0]} twice")
    unknown = [
        name for name in schema.names if name not in NAMES and not name.startswith(_INDEX_OF_PANDAS)
    ]
    missing = [column.name for column in COLUMNS if column.required]
    missing = [name for name in missing if name not in schema.names]
    if missing:
        near = near_name(unknown, missing)
        raise HistoryError(f"{path} lacks the columns {', '.join(missing)}{near}")
    if unknown:
        near = near_name(unknown, [name for name in NAMES if name not in schema.names])
        raise HistoryError(f"{path} has the unknown columns {', '.join(unknown)}{near}")
    for column in COLUMNS:
        if column.name in schema.names:
            found = schema.field(column.name).type
            if not _fits(_spelt(found), column):
                raise HistoryError(f"{path} has {column.name} as {found}; it must be {column.type}")


_VERSIONS = {str(number).encode() for number in range(1, HISTORY_VERSION + 1)}


def near_name(unknown: list[str], wanted: list[str]) -> str:
    for name in unknown:
        if close := difflib.get_close_matches(name, wanted, n=1):
            return f"; is {name} meant to be {close[0]}?"
    return ""


def _spelt(found: Any) -> Any:
    return found.value_type if pa.types.is_dictionary(found) else found


def _fits(found: Any, column: Column) -> bool:
    if pa.types.is_null(found):
        return True
    if column.type == "string":
        return bool(
            pa.types.is_string(found)
            or pa.types.is_large_string(found)
            or str(found) == "string_view"
        )
    return bool(
        pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found)
    )


def fitted(table: pa.Table, path: Path, names: Container[str] = NAMES) -> pa.Table:
    """The table with every column of a history, in order and in our types; a column that it lacks is null.

    names: only these columns are wanted. Its schema was checked. Raises HistoryError for a number that is not whole or
    too large.
    """
    columns = {}
    for column in COLUMNS:
        if column.name not in names:
            continue
        wanted = _type_of(column)
        if column.name not in table.column_names:
            columns[column.name] = pa.nulls(table.num_rows, _ARROW[column.type]).cast(wanted)
            continue
        found = table.column(column.name)
        try:
            columns[column.name] = _cast(found, wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise HistoryError(
                f"{path} has a value of {column.name} that is no {column.type}: {reason}"
            ) from error
    schema = arrow_schema()
    some = pa.schema([schema.field(name) for name in columns], metadata=schema.metadata)
    return pa.table(list(columns.values()), schema=some)


def _cast(found: Any, wanted: Any) -> Any:
    if found.type == wanted:
        return found
    if pa.types.is_dictionary(wanted):
        plain = found.cast(_spelt(found.type)) if pa.types.is_dictionary(found.type) else found
        return plain.cast(pa.string()).dictionary_encode().cast(wanted)
    if pa.types.is_floating(_spelt(found.type)):
        plain = found.cast(_spelt(found.type))
        # Where pandas has a gap in a column of numbers, it has NaN.
        return pc.if_else(pc.is_nan(plain), None, plain).cast(wanted)
    return found.cast(wanted)


def tables(path: Path, names: Collection[str] = NAMES) -> Iterator[pa.Table]:
    """A file's rows as they lie in it, some ten thousand at a time, in our schema. Raises HistoryError.

    names: only these columns are read.
    """
    reader = pq.ParquetFile(path)
    there = [name for name in NAMES if name in names and name in reader.schema_arrow.names]
    for batch in reader.iter_batches(batch_size=BATCH_ROWS, columns=there):
        yield fitted(pa.Table.from_batches([batch]), path, names)


def in_our_schema(path: Path, other: Path) -> Path:
    """The file itself where it is written as ours are; else `other`, to which its rows are written so, as they lie."""
    schema = pq.read_schema(path)
    if is_ours(schema):
        return path
    check_schema(schema, path)
    order = (schema.metadata or {}).get(ORDER_KEY)
    written = arrow_schema()
    if order is not None:
        written = written.with_metadata({**written.metadata, ORDER_KEY: order})
    with pq.ParquetWriter(other, written, compression="zstd", compression_level=1) as writer:
        for table in tables(path):
            writer.write_table(table.cast(written))
    return other
