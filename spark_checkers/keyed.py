"""Rows brought together by key, and judged: by one shuffle and one sort, or straight from ordered files.

Both ways hand the same kernels the same tables: whole keys, sorted by key and seq_begin, some hundred thousand
rows at a time (more only when one key alone has more).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_checkers.rows import Findings, Runs, coded, keep
from spark_checkers.twin import FINDINGS, Twin, judge_table, needed, to_batch
from specs.vocabulary import Key

CHUNK_ROWS = 1 << 19
"""Whole keys are judged together until they are this many rows."""
BATCH_ROWS = 1 << 17
SOURCE = "source_id"
"""The id of the message as it was first sent; made from origin_id and message_id."""
KEY_COLUMNS: dict[Key, tuple[str, ...]] = {
    Key.QUEUE: ("run", "topic", "broker", "queue_id"),
    Key.MESSAGE: ("run", SOURCE),
    Key.GROUP: ("run", "group"),
    Key.GROUP_KEY: ("run", "group", "topic", "sharding_key"),
    Key.PRODUCER_KEY: ("run", "client_id", "topic", "sharding_key"),
    Key.TOPIC_KEY: ("run", "topic", "sharding_key"),
    Key.RUN: ("run",),
}
_MUST_HAVE: dict[Key, tuple[str, ...]] = {
    Key.QUEUE: ("queue_id",),
    Key.MESSAGE: (SOURCE,),
    Key.GROUP: ("group",),
    Key.GROUP_KEY: ("group", "sharding_key"),
    Key.PRODUCER_KEY: ("sharding_key",),
    Key.TOPIC_KEY: ("sharding_key",),
    Key.RUN: (),
}


def by_key(rows: Any, twins: Sequence[Twin], runs: Runs) -> Any:
    """A DataFrame of history rows → a DataFrame of `FINDINGS`, for twins of one key: one shuffle, one sort."""
    from pyspark.sql import functions as F

    (key,) = {twin.key for twin in twins}
    kinds = {kind.value for twin in twins for kind in twin.clause.kinds}
    levels = {level.value for twin in twins for level in twin.clause.levels}
    columns = KEY_COLUMNS[key]
    wanted = rows.where(F.col("kind").isin(sorted(kinds)) & F.col("level").isin(sorted(levels)))
    names = list(needed(twins))
    if any(_needs_source(twin) for twin in twins):
        origin = F.when(F.col("origin_id") != "", F.col("origin_id"))
        wanted = wanted.withColumn(
            SOURCE, F.coalesce(origin, F.col("message_id"), F.col("origin_id"))
        )
        names.append(SOURCE)
    for name in _MUST_HAVE[key]:
        wanted = wanted.where(F.col(name).isNotNull())
    names.extend(name for name in columns if name not in names)
    return (
        wanted.select(*names)
        .repartition(*columns)
        .sortWithinPartitions(*columns, "seq_begin")
        .mapInArrow(
            partial(_judge_batches, columns=columns, twins=tuple(twins), runs=runs), FINDINGS
        )
    )


def _needs_source(twin: Twin) -> bool:
    return "origin_id" in twin.columns


def _judge_batches(
    batches: Iterator[pa.RecordBatch], *, columns: Sequence[str], twins: Sequence[Twin], runs: Runs
) -> Iterator[pa.RecordBatch]:
    for table in whole_keys(batches, columns):
        yield to_batch(judge_table(table, twins, runs))


def with_source(table: pa.Table) -> pa.Table:
    """The table with the column `SOURCE`."""
    if SOURCE in table.column_names:
        return table
    origin, message = table.column("origin_id"), table.column("message_id")
    if origin.null_count == len(origin):
        return table.append_column(SOURCE, message)
    named = pc.if_else(pc.not_equal(origin, ""), origin, None)
    return table.append_column(SOURCE, pc.coalesce(named, message, origin))


def judge_in_memory(
    table: pa.Table, twins: Sequence[Twin], runs: Runs, least: int = CHUNK_ROWS
) -> Iterator[Findings]:
    """The findings of all twins on an Arrow table of history rows, in this process and without Spark.

    For slices and tests: the same kernels, keys, cuts and order as on Spark. Rows may come in any order.
    """
    table = with_source(table)
    for key in {twin.key for twin in twins}:
        chosen = tuple(twin for twin in twins if twin.key is key)
        rows = keep(table, "kind", {kind for twin in chosen for kind in twin.clause.kinds})
        rows = rows.select([*dict.fromkeys([*needed(chosen), *KEY_COLUMNS[key], SOURCE])])
        for name in _MUST_HAVE[key]:
            rows = rows.filter(rows.column(name).is_valid())
        order = np.lexsort(
            (rows.column("seq_begin").to_numpy(), *reversed(codes_of(rows, KEY_COLUMNS[key])))
        )
        batches = (
            rows.take(pa.array(order)).combine_chunks().to_batches(max_chunksize=max(1, least // 4))
        )
        for part in whole_keys(batches, KEY_COLUMNS[key], least):
            yield from judge_table(part, chosen, runs)


def codes_of(table: pa.Table, columns: Sequence[str]) -> list[Any]:
    """The columns as numbers: equal values have equal numbers."""
    none = np.iinfo(np.int64).min
    return [
        coded(table.column(name))[0]
        if name != "queue_id"
        else table.column(name).fill_null(none).to_numpy()
        for name in columns
    ]


def whole_keys(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], least: int = CHUNK_ROWS
) -> Iterator[pa.Table]:
    """Sorted batches, cut and joined so that every table holds whole keys: as few tables as `least` rows each allow."""
    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting_rows + batch.num_rows >= least:
            start = last_key_start(batch, columns)
            joined = start == 0 and bool(waiting) and same_key(waiting[-1], batch, columns)
            if not joined:
                ready = [*waiting, batch.slice(0, start)] if start else waiting
                if ready:
                    yield pa.Table.from_batches(ready)
                waiting, waiting_rows = [], 0
                batch = batch.slice(start)
        waiting.append(batch)
        waiting_rows += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)


def _codes(batch: pa.RecordBatch, name: str) -> Any:
    column = batch.column(batch.schema.get_field_index(name))
    if pa.types.is_integer(column.type):
        return (
            column.fill_null(np.iinfo(np.int64).min) if column.null_count else column
        ).to_numpy()
    return coded(column)[0]


def last_key_start(batch: pa.RecordBatch, columns: Sequence[str]) -> int:
    """Where the rows of the batch's last key begin."""
    start = 0
    for name in columns:
        codes = _codes(batch, name)
        other = np.flatnonzero(codes != codes[-1])
        if len(other):
            start = max(start, int(other[-1]) + 1)
    return start


def key_at(batch: pa.RecordBatch, index: int, columns: Sequence[str]) -> tuple[Any, ...]:
    return tuple(
        batch.column(batch.schema.get_field_index(name))[index].as_py() for name in columns
    )


def same_key(before: pa.RecordBatch, after: pa.RecordBatch, columns: Sequence[str]) -> bool:
    """Does `after` go on with the last key of `before`?"""
    return key_at(before, before.num_rows - 1, columns) == key_at(after, 0, columns)
