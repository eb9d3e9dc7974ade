"""Histories that already lie in the order of their queues: judged where they lie, without a shuffle.

`inorder generate` and `inorder compact` write rows by (run, topic, broker, queue_id, seq_begin), nothing first, and
say so in every file's metadata. Such files are cut at row groups into parts; a part judges the keys that begin in
it, reads on until its last key is whole, and leaves the rows of a key that began earlier to the part before. Each
part reads its rows with Arrow, so no row passes through the Java process. Files that claim the order and lack it
are an error, never a wrong verdict.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_checkers.keyed import BATCH_ROWS, Long, key_at, length_of, whole_or_long
from specs.errors import HistoryError
from specs.facts.groupings import QUEUES
from specs.history.columns import COLUMNS

ORDER_KEY = b"inorder.order"
BY_QUEUE = b"queue"
ORDER = QUEUES.columns
PART_ROWS = 1 << 21
"""About how many rows a part holds: enough for whole arrays to pay, few enough to share out evenly."""

_DICTIONARIES = {column.name for column in COLUMNS if column.dictionary}
Group = tuple[str, int]
"""A row group: (path, number within the file)."""


@dataclass(frozen=True, slots=True)
class Part:
    """Row groups start..stop-1 of all."""

    start: int
    stop: int


def is_by_queue(paths: Sequence[Path]) -> bool:
    """Do all files say that they lie by queue?"""
    return bool(paths) and all(
        (pq.read_schema(path).metadata or {}).get(ORDER_KEY) == BY_QUEUE for path in paths
    )


def has_long_key(groups: Sequence[Group], sizes: Sequence[int], rows: int) -> bool:
    """May a queue have more rows than that, as far as the statistics of the row groups tell?

    A row group between two others of a long queue holds nothing else: least and greatest are one in each key column.
    """
    at_the_edges = 2 * max(sizes, default=0)
    if at_the_edges > rows:
        return True
    metadata = {path: pq.read_metadata(path) for path, _ in groups}
    found, before = 0, None
    for (path, number), size in zip(groups, sizes, strict=True):
        key = _only_key(metadata[path].row_group(number))
        found = 0 if key is None else size + (found if key == before else 0)
        before = key
        if found and found + at_the_edges > rows:
            return True
    return False


def _only_key(group: Any) -> tuple[Any, ...] | None:
    """The key of all rows of a row group, None where there are several; empty where nobody says."""
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    told = [columns[name].statistics for name in ORDER]
    if not all(each is not None and each.has_min_max for each in told):
        return ()
    return tuple(each.min for each in told) if all(each.min == each.max for each in told) else None


def row_groups(paths: Sequence[Path]) -> tuple[list[Group], list[int]]:
    """All row groups in the order of the files' names, and how many rows each has."""
    groups: list[Group] = []
    sizes: list[int] = []
    for path in sorted(paths):
        metadata = pq.read_metadata(path)
        for index in range(metadata.num_row_groups):
            if metadata.row_group(index).num_rows:
                groups.append((str(path), index))
                sizes.append(metadata.row_group(index).num_rows)
    return groups, sizes


def read_group(path: str, number: int, columns: Sequence[str]) -> pa.Table:
    """A row group's columns, in the types of a history."""
    return plain(Reader(path).read(number, columns))


def read_groups(groups: Sequence[Group], part: Part, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Likewise of each row group of a part; a file is opened once."""
    for path, some in itertools.groupby(groups[part.start : part.stop], key=lambda group: group[0]):
        reader = Reader(path)
        for _path, number in some:
            yield plain(reader.read(number, columns))


class Reader:
    """A file of a history, read by row groups: columns of one value are made from what the file says of them.

    They are a fifth of what there is to decode: the level, the run, and what nobody recorded.
    """

    def __init__(self, path: str) -> None:
        self.file = pq.ParquetFile(path)
        schema = self.file.metadata.schema
        self._place = {schema.column(place).path: place for place in range(len(schema))}
        self._types = {field.name: field.type for field in self.file.schema_arrow}

    def read(self, number: int, columns: Sequence[str]) -> pa.Table:
        """These columns, in this order."""
        group = self.file.metadata.row_group(number)
        made = {name: self._made(group, name) for name in columns}
        others = [name for name in columns if made[name] is None]
        table = self.file.read_row_group(number, others, use_threads=False)
        arrays = [table.column(name) if made[name] is None else made[name] for name in columns]
        return pa.table(arrays, names=list(columns))

    def _made(self, group: Any, name: str) -> pa.Array | None:
        """The column, where its chunk holds nothing or one value, and says so."""
        kind, told = self._types[name], group.column(self._place[name]).statistics
        if told is None or not told.has_null_count:
            return None
        if told.null_count == group.num_rows:
            return pa.nulls(group.num_rows, kind)
        if told.null_count or not told.has_min_max or told.min != told.max:
            return None
        # Some writers cut long texts off where they say which is the least and the greatest.
        if not (isinstance(told.min, int) or (isinstance(told.min, str) and len(told.min) < 16)):
            return None
        if pa.types.is_integer(kind):
            return pa.array(np.full(group.num_rows, told.min), kind)
        if not pa.types.is_dictionary(kind):
            return pa.repeat(pa.scalar(told.min, kind), group.num_rows)
        codes = pa.array(np.zeros(group.num_rows, kind.index_type.to_pandas_dtype()))
        word = pa.array([told.min], kind.value_type)
        return pa.DictionaryArray.from_arrays(codes, word, safe=False)

    def batches(self, number: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Likewise, a large group in parts; to read a small one in parts takes longer."""
        if self.file.metadata.row_group(number).num_rows <= 2 * BATCH_ROWS:
            yield from self.read(number, columns).to_batches()
            return
        names = list(columns)
        for batch in self.file.iter_batches(BATCH_ROWS, [number], names, use_threads=False):
            yield pa.record_batch([batch.column(name) for name in names], names=names)


def plain(table: pa.Table) -> pa.Table:
    """Texts in the types of a history, whoever wrote them, so that what several files hold goes together."""
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in _DICTIONARIES and not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        elif name not in _DICTIONARIES and not pa.types.is_integer(column.type):
            column = column.cast(pa.string())
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def parts(sizes: Sequence[int], at_least: int) -> list[Part]:
    """Cut row groups into parts of about `PART_ROWS`, and into `at_least` parts where there are enough groups."""
    total = sum(sizes)
    wanted = max(at_least, -(-total // PART_ROWS))
    cuts: list[Part] = []
    done = start = 0
    for index, size in enumerate(sizes):
        done += size
        if done * wanted >= total * (len(cuts) + 1):
            cuts.append(Part(start, index + 1))
            start = index + 1
    return cuts


def part_tables(
    groups: Sequence[Group], part: Part, columns: Sequence[str], long: Long | None = None
) -> Iterator[Any]:
    """The whole keys that begin in a part, as tables, and long queues as `Pieces`.

    Rows that name no queue have keys too; they come first.
    """
    return whole_or_long(_part_batches(groups, part, columns), ORDER, long)


def _part_batches(
    groups: Sequence[Group], part: Part, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The part's batches: without the rest of an earlier key, and with the rest of its last one."""
    last = _last_row_before(groups, part.start)
    checked = _Order(last)
    skipping = key_at(last, 0, ORDER) if last is not None else None
    reader: Reader | None = None
    for index in range(part.start, len(groups)):
        path, number = groups[index]
        if reader is None or path != groups[index - 1][0]:
            reader = Reader(path)
        for batch in reader.batches(number, columns):
            if not batch.num_rows:
                continue
            if skipping is not None:
                batch = _after(batch, skipping)
                if not batch.num_rows:
                    continue
                skipping = None
                if index >= part.stop:
                    return  # the part held nothing but the rest of an earlier key
            if index >= part.stop:
                mine = checked.goes_on(batch)
                if mine:
                    yield checked.look(batch.slice(0, mine), path)
                if mine < batch.num_rows:
                    return
                continue
            yield checked.look(batch, path)
        if skipping is not None and index + 1 >= part.stop:
            return


def _last_row_before(groups: Sequence[Group], start: int) -> pa.RecordBatch | None:
    if start == 0:
        return None
    path, number = groups[start - 1]
    table = pq.ParquetFile(path).read_row_group(
        number, columns=[*ORDER, "seq_begin"], use_threads=False
    )
    return table.slice(table.num_rows - 1).combine_chunks().to_batches()[0]


def _after(batch: pa.RecordBatch, key: tuple[Any, ...]) -> pa.RecordBatch:
    """The batch without the rows of `key` at its start."""
    return batch.slice(length_of(batch, key, ORDER))


def _sortable(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        (value is not None, value.encode() if isinstance(value, str) else value or 0)
        for value in key
    )


class _Order:
    """Checks that what is read lies in the order that the metadata promise."""

    def __init__(self, last: pa.RecordBatch | None) -> None:
        self._key = key_at(last, 0, ORDER) if last is not None else None
        self._seq = key_at(last, 0, ("seq_begin",))[0] if last is not None else -1

    def goes_on(self, batch: pa.RecordBatch) -> int:
        return length_of(batch, self._key, ORDER) if self._key is not None else 0

    def look(self, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
        """The batch itself, or HistoryError."""
        seq = batch.column(batch.schema.get_field_index("seq_begin")).to_numpy()
        starts = self._key_starts(batch)
        within = np.ones(len(seq) - 1, np.bool_)
        within[starts[1:] - 1] = False
        keys = [key_at(batch, int(start), ORDER) for start in starts]
        if self._key is not None:
            in_order = (
                int(seq[0]) >= self._seq
                if keys[0] == self._key
                else _sortable(self._key) < _sortable(keys[0])
            )
        else:
            in_order = True
        sortable = [_sortable(key) for key in keys]
        in_order = in_order and bool((seq[1:] >= seq[:-1])[within].all())
        in_order = in_order and all(a < b for a, b in itertools.pairwise(sortable))
        if not in_order:
            raise HistoryError(
                f"{path} says that its rows lie by queue and they do not: run `inorder compact`"
            )
        self._key, self._seq = keys[-1], int(seq[-1])
        return batch

    @staticmethod
    def _key_starts(batch: pa.RecordBatch) -> Any:
        changed = np.zeros(batch.num_rows, np.bool_)
        changed[0] = True
        from spark_checkers.keyed import _codes

        for name in ORDER:
            codes = _codes(batch, name)
            changed[1:] |= codes[1:] != codes[:-1]
        return np.flatnonzero(changed)
