"""A history's rows as columns of numbers and codes, in batches: how a report reads one of any size.

Nothing of a row is made that is not asked for; whole rows only of the places that were chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from specs.history.arrow import BATCH_ROWS, fitted, tables
from specs.history.columns import NAMES
from specs.history.row import Row
from specs.history.store import History, rows_of_table, rows_to_table
from specs.vocabulary import Kind, Outcome

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
LaneKey = tuple[str, str, str, int]
PLACE = ("group", "topic", "broker", "queue_id")


class Source:
    """The files of a history, or the rows that were read of it, as batches of columns."""

    def __init__(self, history: History) -> None:
        self.paths = history.parquet
        self.loaded = history.loaded

    def batches(self, names: Sequence[str]) -> Iterator[tuple[int, int, Batch]]:
        """(file, the first row's place in it, rows)."""
        if not self.paths:
            for start in range(0, len(self.loaded), BATCH_ROWS):
                yield 0, start, Batch(rows_to_table(self.loaded[start : start + BATCH_ROWS]))
        for number, path in enumerate(self.paths):
            start = 0
            for table in tables(path, names):
                yield number, start, Batch(table)
                start += table.num_rows

    def rows(self, places: Sequence[tuple[int, int]]) -> Iterator[Row]:
        """The whole rows at some places; of a file only the row groups that hold them are read."""
        if not self.paths:
            yield from (self.loaded[place] for _file, place in places)
            return
        for number, path in enumerate(self.paths):
            wanted = sorted(place for file, place in places if file == number)
            yield from _taken(path, wanted) if wanted else ()


def _taken(path: Path, wanted: Sequence[int]) -> Iterator[Row]:
    file = parquet.ParquetFile(path)
    names = [name for name in NAMES if name in file.schema_arrow.names]
    start = 0
    for group in range(file.num_row_groups):
        count = file.metadata.row_group(group).num_rows
        here = [place - start for place in wanted if start <= place < start + count]
        if here:
            yield from rows_of_table(
                fitted(file.read_row_group(group, columns=names).take(here), path)
            )
        start += count


class Batch:
    """Some rows as columns of numbers and codes; each is made once."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.rows = table.num_rows
        self._columns: dict[str, Any] = {}
        self._codes: dict[str, tuple[Ints, list[str]]] = {}
        self._flags: dict[tuple[str, str], Flags] = {}

    def _column(self, name: str) -> Any:
        if name not in self._columns:
            column = self.table.column(name)
            whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
            if isinstance(whole, pa.ChunkedArray):  # an empty one stays in chunks
                whole = pa.array([], column.type)
            self._columns[name] = whole
        return self._columns[name]

    def numbers(self, name: str, empty: int = 0) -> Ints:
        column = self._column(name)
        filled = column.fill_null(empty) if column.null_count else column
        return np.asarray(filled.to_numpy(zero_copy_only=False), np.int64)

    def there(self, name: str) -> Flags:
        return np.asarray(self._column(name).is_valid().to_numpy(zero_copy_only=False))

    def coded(self, name: str) -> tuple[Ints, list[str]]:
        """A column of words as codes, -1 where there is none, and the words."""
        if name not in self._codes:
            column = self._column(name)
            if not pa.types.is_dictionary(column.type):
                column = column.dictionary_encode()
            codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            words = [str(word) for word in column.dictionary.to_pylist()]
            self._codes[name] = np.asarray(codes, np.int64), words
        return self._codes[name]

    def says(self, name: str, *words: str) -> Flags:
        """Where a column has one of these words."""
        codes, known = self.coded(name)
        wanted = np.array([*(word in words for word in known), False])  # the last is for -1
        return np.asarray(wanted[codes])

    def is_kind(self, *kinds: Kind) -> Flags:
        return self.says("kind", *(kind.value for kind in kinds))

    def ended(self, *outcomes: Outcome) -> Flags:
        return self.says("outcome", *(outcome.value for outcome in outcomes))

    def places(self) -> tuple[Ints, list[list[str]]]:
        """Group, topic, broker (as codes) and number of each row's queue, and the words of the codes."""
        coded = [self.coded(name) for name in PLACE[:3]]
        queue = self.numbers("queue_id", empty=-1)
        return np.vstack([*(codes for codes, _ in coded), queue]), [words for _, words in coded]


def distinct(codes: Ints) -> tuple[Ints, Ints]:
    """The distinct columns of a table of codes, and for each column which of them it is."""
    packed = np.zeros(codes.shape[1], np.int64)
    for line in (
        codes
    ):  # a pair of codes becomes one; they stay small since they are counted anew each time
        _found, again = np.unique(line, return_inverse=True)
        packed = np.unique(packed * (len(_found) + 1) + again, return_inverse=True)[1].reshape(-1)
    _found, first, which = np.unique(packed, return_index=True, return_inverse=True)
    return codes[:, first], which.reshape(-1)


def lane_key(codes: Sequence[int] | Ints, names: Sequence[Sequence[str]]) -> LaneKey:
    """Group, topic, broker and number of a queue, from the codes of `Batch.places`."""
    group, topic, broker = (
        words[int(code)] if code >= 0 else "" for code, words in zip(codes[:3], names, strict=True)
    )
    return group, topic, broker, int(codes[3])
