"""Writes rows that come in their final order: several Parquet files, row groups of even size, memory for one."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from specs.history.arrow import arrow_schema

ORDER_KEY = b"inorder.order"
BY_QUEUE = b"queue"
BY_SEQ = b"seq"
ROWS_PER_FILE = 2_000_000
ROWS_PER_GROUP = 1 << 17


def schema_of(order: bytes) -> pa.Schema:
    """The schema of a history, saying in which order the rows lie."""
    schema = arrow_schema()
    return schema.with_metadata({**schema.metadata, ORDER_KEY: order})


class HistoryWriter:
    """`part-00001.parquet` and on, in `folder/history`. A file is complete or has another name."""

    def __init__(
        self,
        folder: Path,
        order: bytes = BY_QUEUE,
        *,
        rows_per_file: int = ROWS_PER_FILE,
        rows_per_group: int = ROWS_PER_GROUP,
        first_file: int = 1,
    ) -> None:
        self._folder = folder / "history"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._schema = schema_of(order)
        self._per_file, self._per_group = rows_per_file, rows_per_group
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._file: Any = None
        self._path: Path | None = None
        self._in_file = 0
        self.files = 0
        self._number = first_file
        self.rows = 0

    def write(
        self,
        table: pa.Table,
        *,
        file_before: Collection[int] = (),
        group_before: Collection[int] = (),
    ) -> None:
        """Append rows. A new file (or row group) begins before each of these row numbers of the table."""
        start = 0
        for cut in sorted({*file_before, *group_before, table.num_rows}):
            self._append(table.slice(start, cut - start))
            start = cut
            if cut in file_before:
                self._end_file()
            elif cut in group_before:
                self._end_group()

    def close(self) -> None:
        self._end_file()

    def _append(self, table: pa.Table) -> None:
        while table.num_rows:
            room = self._per_group - self._waiting_rows
            self._waiting.append(table.slice(0, room))
            self._waiting_rows += self._waiting[-1].num_rows
            table = table.slice(room)
            if self._waiting_rows >= self._per_group:
                self._end_group()

    def _end_group(self) -> None:
        if not self._waiting_rows:
            return
        table = pa.concat_tables(self._waiting).unify_dictionaries().combine_chunks()
        self._waiting, self._waiting_rows = [], 0
        if self._file is None:
            self._path = self._folder / f"part-{self._number:05d}.parquet"
            self._number += 1
            self._file = pq.ParquetWriter(
                self._path.with_suffix(".part"),
                self._schema,
                compression="zstd",
                compression_level=1,
            )
        self._file.write_table(table.cast(self._schema), row_group_size=table.num_rows)
        self.rows += table.num_rows
        self._in_file += table.num_rows
        if self._in_file >= self._per_file:
            self._end_file()

    def _end_file(self) -> None:
        self._end_group()
        if self._file is None or self._path is None:
            return
        self._file.close()
        self._path.with_suffix(".part").replace(self._path)
        self._file, self._path, self._in_file = None, None, 0
        self.files += 1
