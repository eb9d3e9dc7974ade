"""Writes rows as a history's Parquet files, some ten thousand at a time, and counts which columns have values.

A file, and the history as a whole, is complete or has another name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from specs.history.arrow import BATCH_ROWS, ORDER_KEY, arrow_schema
from specs.history.columns import NAMES

ROWS_PER_FILE = 2_000_000


@dataclass(slots=True)
class Written:
    """What was written: by kind the rows, and how many of them have a value in each column that has any."""

    rows: dict[str, int] = field(default_factory=dict)
    values: dict[str, dict[str, int]] = field(default_factory=dict)
    levels: set[str] = field(default_factory=set)

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def columns(self, kind: str) -> frozenset[str]:
        """The columns of which at least one row of that kind has a value."""
        return frozenset(name for name, count in self.values.get(kind, {}).items() if count)


def write_rows(folder: Path, rows: Iterable[list[Any]]) -> Written:
    """Write rows that come by seq_begin into `folder`, as `part-00000.parquet` and on."""
    folder.mkdir(parents=True)
    schema = arrow_schema()
    schema = schema.with_metadata({**schema.metadata, ORDER_KEY: b"seq"})
    written = Written()
    coming = iter(rows)
    batch = list(islice(coming, BATCH_ROWS))
    number = 0
    while batch:
        path = folder / f"part-{number:05d}.parquet"
        in_file = 0
        with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
            while batch and in_file < ROWS_PER_FILE:
                table = _table(batch)
                _count(written, table)
                writer.write_table(table.cast(schema))
                in_file += len(batch)
                batch = list(islice(coming, BATCH_ROWS))
        number += 1
    return written


def _table(batch: list[list[Any]]) -> Any:
    """The rows as plain columns: what a dictionary is worth is the writer's affair."""
    arrays = []
    for values, column in zip(zip(*batch, strict=True), arrow_schema(), strict=True):
        plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        empty = values.count(None) == len(batch)  # as most columns of a log are
        arrays.append(pa.nulls(len(batch), plain) if empty else pa.array(values, type=plain))
    return pa.table(arrays, names=list(NAMES))


def _count(written: Written, table: Any) -> None:
    having = [name for name in NAMES if table.column(name).null_count < table.num_rows]
    counted = table.group_by("kind").aggregate([(name, "count") for name in having])
    for row in counted.to_pylist():
        kind = row["kind"]
        written.rows[kind] = written.rows.get(kind, 0) + row["seq_begin_count"]
        mine = written.values.setdefault(kind, {})
        for name in having:
            mine[name] = mine.get(name, 0) + row[f"{name}_count"]
    written.levels.update(table.column("level").unique().to_pylist())
