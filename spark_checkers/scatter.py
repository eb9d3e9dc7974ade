"""Rows brought together by key through files: each task sorts its rows into buckets, and a bucket is judged whole.

A task writes one Arrow file for each grouping, in batches of whole buckets, and says how many rows each has; whoever
judges a bucket reads its rows of every file. A file's name is one attempt's, so that two attempts at a task never
write into each other's, and only the files that a task reports are read.
"""

import itertools
import uuid
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_checkers import hashing
from spark_checkers.hashing import Hashes
from spark_checkers.keyed import Long, in_order
from spark_checkers.ordered import Group, Part, plain, read_groups
from specs.facts.columns import Ints
from specs.facts.groupings import QUEUES, SOURCE, Grouping
from specs.facts.judges import Judge
from specs.facts.segments import dense, first_of_each
from specs.facts.together import codes_of, columns_of, wanted_of, with_source

BUCKET_ROWS = 1 << 18
"""About how many rows of a history come to a bucket, if all of them are wanted."""
JUDGED_ROWS = 1 << 19
"""Small buckets are judged together up to so many rows."""

BATCH_ROWS = 1 << 10
"""So many rows at least come to a batch, if there are as many: a hundred thousand small ones take gigabytes to read."""
SAMPLED = 64
"""Every so many seqs tell where windows of seq are cut."""


@dataclass(frozen=True, slots=True)
class Spill:
    """A file of rows in buckets. rows: how many each bucket has; batches: likewise each batch, of whole buckets."""

    path: str
    rows: tuple[int, ...]
    batches: tuple[int, ...] = ()

    def size(self, buckets: range) -> int:
        """How many rows these buckets have."""
        return sum(self.rows[buckets.start : buckets.stop])

    def read(self, buckets: range) -> pa.Table | None:
        """The rows of these buckets, None where there are none."""
        start, count = sum(self.rows[: buckets.start]), self.size(buckets)
        if not count:
            return None
        ends = list(itertools.accumulate(self.batches))
        first, last = bisect_right(ends, start), bisect_left(ends, start + count)
        with pa.memory_map(self.path) as source:
            reader = pa.ipc.open_file(source)
            batches = [reader.get_batch(number) for number in range(first, last + 1)]
        return pa.Table.from_batches(batches).slice(
            start - ends[first] + self.batches[first], count
        )


@dataclass(frozen=True, slots=True)
class Together:
    """Twins that need the same rows together."""

    grouping: Grouping
    judges: tuple[Judge, ...]

    @property
    def columns(self) -> list[str]:
        return columns_of(self.judges, self.grouping)


@dataclass(frozen=True, slots=True)
class Scatter:
    """How tasks bring rows together: in how many buckets, and where these are kept."""

    buckets: int
    scratch: str

    def queues(
        self,
        number: int,
        *,
        judges: tuple[Judge, ...],
        columns: Sequence[str],
        groups: Sequence[Group],
        cut: Sequence[Part],
    ) -> Spill:
        """Of one part of the files the rows that these judges need, by queue; those of no queue as well."""
        wanted = Together(QUEUES, judges)
        names = [name for name in columns if name != SOURCE]
        tables = read_groups(groups, cut[number], names)
        table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        if SOURCE in columns:
            table = with_source(table)
        where = wanted_of(table, judges, QUEUES, whole=False)
        return self.write(wanted, table.select(columns), where)

    def write(self, wanted: Together, table: pa.Table, where: Ints) -> Spill:
        """The rows at these positions, in buckets by their key."""
        if not len(where):
            return Spill("", (0,) * self.buckets)
        columns = wanted.grouping.columns
        keys = table.select(columns).take(pa.array(where))
        bucket = key_hashes(keys, columns) % np.uint64(self.buckets)
        return spilled(plain(table), where, bucket, self.buckets, self.scratch)


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
    batches = tuple(_batches(counts))
    with pa.ipc.new_file(str(path), rows.schema, options=options) as writer:
        for start, count in zip(itertools.accumulate(batches, initial=0), batches, strict=False):
            writer.write_table(rows.slice(start, count))
    return Spill(str(path), tuple(counts), batches)


def _batches(counts: Iterable[int]) -> Iterator[int]:
    """The sizes of batches that hold whole buckets of these sizes."""
    waiting = 0
    for count in counts:
        waiting += count
        if waiting >= BATCH_ROWS:
            yield waiting
            waiting = 0
    if waiting:
        yield waiting


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
    tables = list(one_by_one(spills, buckets))
    return pa.concat_tables(tables).unify_dictionaries() if tables else None


def keys_in_order(
    spills: Sequence[Spill], buckets: range, grouping: Grouping, long: Long | None
) -> Iterator[pa.RecordBatch]:
    """The rows of these buckets key by key and by seq_begin, of long keys never all at once."""
    if long is None or sum(each.size(buckets) for each in spills) <= long.rows:
        table = gathered(spills, buckets)
        if table is not None:
            yield from in_order(table, grouping)
        return
    sizes: Counter[int] = Counter()
    for table in one_by_one(spills, buckets):
        keys, counts = np.unique(key_hashes(table, grouping.columns), return_counts=True)
        sizes.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
    many = {key for key, rows in sizes.items() if rows > long.rows}
    few = [
        table.filter(pa.array(~np.isin(key_hashes(table, grouping.columns), list(many))))
        for table in one_by_one(spills, buckets)
    ]
    yield from in_order(pa.concat_tables(few).unify_dictionaries(), grouping)
    del few
    for key in sorted(many):
        windows = 1 + sizes[key] // long.piece_rows
        of_key = partial(_of_key, spills, buckets, grouping, key)
        for rows in by_windows(of_key, windows, long.folder):
            yield from in_order(rows, grouping)


def by_windows(
    tables: Callable[[], Iterable[pa.Table]], windows: int, folder: str
) -> Iterator[pa.Table]:
    """The rows of these tables, which are made twice, by windows of seq that are about even and held one at a time."""
    edges = even_cuts((each.column("seq_begin").to_numpy() for each in tables()), windows)
    spills: list[Spill] = []
    for table in tables():
        window = np.searchsorted(edges, table.column("seq_begin").to_numpy(), side="right")
        spills.append(spilled(table, np.arange(table.num_rows), window, windows, folder))
    for window in range(windows):
        rows = gathered(spills, range(window, window + 1))
        if rows is not None:
            yield rows
    for spill in spills:
        Path(spill.path).unlink()


def even_cuts(seqs: Iterable[Ints], windows: int) -> Ints:
    """Where so many windows of seq are cut to hold as many rows each, as far as a sample of the seqs tells."""
    sample = np.sort(np.concatenate([each[::SAMPLED] for each in seqs]))
    cuts: Ints = sample[len(sample) * np.arange(1, windows) // windows]
    return cuts


def _of_key(
    spills: Sequence[Spill], buckets: range, grouping: Grouping, key: int
) -> Iterator[pa.Table]:
    for table in one_by_one(spills, buckets):
        yield table.filter(pa.array(key_hashes(table, grouping.columns) == np.uint64(key)))


def one_by_one(spills: Sequence[Spill], buckets: range) -> Iterator[pa.Table]:
    """The rows of these buckets, file by file."""
    tables = (spill.read(buckets) for spill in spills)
    return (table for table in tables if table is not None)


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
