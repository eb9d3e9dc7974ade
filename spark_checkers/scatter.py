"""Rows brought together by key through files: each task sorts its rows into buckets, and a bucket is judged whole.

A task writes one Arrow file for each grouping, a batch for each bucket, and says how many rows each has; whoever
judges a bucket reads its batch of every file. A file's name is one attempt's, so that two attempts at a task never
write into each other's, and only the files that a task reports are read.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_checkers import hashing
from spark_checkers.hashing import Hashes
from spark_checkers.keyed import codes_of, columns_of, wanted_of, with_source
from spark_checkers.ordered import Group, Part, plain, read_groups
from spark_checkers.segments import Ints, dense, first_of_each
from spark_checkers.twin import QUEUES, SOURCE, Grouping, Twin

BUCKET_ROWS = 1 << 18
"""About how many rows of a history come to a bucket, if all of them are wanted."""
JUDGED_ROWS = 1 << 20
"""Small buckets are judged together up to so many rows."""


@dataclass(frozen=True, slots=True)
class Spill:
    """A file of rows in buckets. rows: how many each has; one that has none has no batch."""

    path: str
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Twins that need the same rows together."""

    grouping: Grouping
    twins: tuple[Twin, ...]

    @property
    def columns(self) -> list[str]:
        return columns_of(self.twins, self.grouping)


@dataclass(frozen=True, slots=True)
class Scatter:
    """How tasks bring rows together: in how many buckets, and where these are kept."""

    buckets: int
    scratch: str

    def queues(
        self, number: int, *, twins: tuple[Twin, ...], groups: Sequence[Group], cut: Sequence[Part]
    ) -> Spill:
        """Of one part of the files the rows that these twins need, by queue; those of no queue as well."""
        wanted = Together(QUEUES, twins)
        names = [name for name in wanted.columns if name != SOURCE]
        tables = read_groups(groups, cut[number], names)
        table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        if SOURCE in wanted.columns:
            table = with_source(table)
        return self.write(wanted, table, wanted_of(table, twins, QUEUES, whole=False))

    def write(self, wanted: Together, table: pa.Table, where: Ints) -> Spill:
        """The rows at these positions, in buckets by their key; with the columns that these twins need."""
        if not len(where):
            return Spill("", (0,) * self.buckets)
        columns = wanted.grouping.columns
        keys = table.select(columns).take(pa.array(where))
        bucket = key_hashes(keys, columns) % np.uint64(self.buckets)
        rows = plain(table.select(wanted.columns))
        return spilled(rows, where, bucket, self.buckets, self.scratch)


def spilled(
    table: pa.Table,
    where: Ints,
    bucket: Any,
    buckets: int,
    scratch: str,
    *,
    compression: str | None = "lz4",
) -> Spill:
    """The rows at these positions, each in the bucket of this number."""
    small = bucket.astype(np.min_scalar_type(buckets))  # sorts faster
    order = np.argsort(small, kind="stable")
    counts = np.bincount(small, minlength=buckets).tolist()
    rows = table.take(pa.array(where[order]))
    path = Path(scratch) / f"{uuid.uuid4().hex}.arrow"
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(str(path), rows.schema, options=options) as writer:
        start = 0
        for count in counts:
            if count:
                writer.write_table(rows.slice(start, count))
                start += count
    return Spill(str(path), tuple(counts))


def key_hashes(rows: pa.Table, columns: Iterable[str]) -> Hashes:
    """A hash per row of its key."""
    columns = tuple(columns)
    types = [rows.schema.field(name).type for name in columns]
    if all(pa.types.is_integer(each) or pa.types.is_dictionary(each) for each in types):
        number, count = dense(*codes_of(rows, columns))  # there are few, so each is hashed once
        few = rows.select(columns).take(pa.array(first_of_each(number, count)))
        return _row_hashes(few, columns)[number]
    return _row_hashes(rows, columns)


def _row_hashes(rows: pa.Table, columns: Sequence[str]) -> Hashes:
    return hashing.together(
        *(
            hashing.of_numbers(np.asarray(rows.column(name).fill_null(-1).combine_chunks()))
            if pa.types.is_integer(rows.schema.field(name).type)
            else hashing.of_texts(rows.column(name))
            for name in columns
        )
    )


def gathered(spills: Sequence[Spill], buckets: range) -> pa.Table | None:
    """The rows of these buckets, from all files; None where there are none."""
    tables: list[pa.Table] = []
    for spill in spills:
        wanted = [bucket for bucket in buckets if spill.rows[bucket]]
        if not wanted:
            continue
        first = sum(1 for rows in spill.rows[: buckets.start] if rows)
        with pa.memory_map(spill.path) as source:
            reader = pa.ipc.open_file(source)
            batches = [reader.get_batch(first + index) for index in range(len(wanted))]
            tables.append(pa.Table.from_batches(batches))
    return pa.concat_tables(tables).unify_dictionaries() if tables else None


def shared_out(spills: Sequence[Spill], at_least: int) -> list[range]:
    """Buckets that are judged together: as few tasks as their rows allow, and `at_least` where they are enough."""
    if not spills:
        return []
    rows = np.sum([spill.rows for spill in spills], axis=0)
    most = min(JUDGED_ROWS, max(1, int(rows.sum()) // at_least))
    cuts: list[range] = []
    start = waiting = 0
    for bucket, count in enumerate(rows.tolist()):
        if waiting and waiting + count > most:
            cuts.append(range(start, bucket))
            start, waiting = bucket, 0
        waiting += count
    if waiting:
        cuts.append(range(start, len(rows)))
    return cuts
