"""Rows brought together by key, and judged: in this process, or on a DataFrame by one shuffle and one sort.

Both ways hand the same judges the same tables: whole keys, sorted by key and seq_begin, some hundred thousand
rows at a time (more only when one key alone has more).
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_checkers import pieces
from spark_checkers.balances import Balance, Balances
from spark_checkers.judging import FINDINGS, judge_table, relevant_where, to_batch
from spark_checkers.pieces import Pieces
from spark_checkers.session import on_workers
from specs.facts.columns import Ints
from specs.facts.findings import Findings
from specs.facts.groupings import CLIENTS, GROUPINGS, QUEUES, SOURCE, Grouping
from specs.facts.judges import Judge
from specs.facts.rows import Rows, encoded
from specs.facts.run_context import Runs
from specs.facts.together import columns_of, numbers_of, order_of
from specs.scratch import Scratch
from specs.vocabulary import Key

IN_PIECES: dict[Grouping, tuple[str, ...]] = {
    QUEUES: pieces.COLUMNS,
    CLIENTS: (),
    **{GROUPINGS[key]: () for key in (Key.GROUP_KEY, Key.PRODUCER_KEY, Key.TOPIC_KEY)},
}
"""Keys that are judged in pieces where they are long, and the columns that are needed for it besides. A message has few
rows, and what is brought together by group or run grows with lanes and time."""
CHUNK_ROWS = 1 << 17
"""Whole keys are judged together until they are this many rows."""
BATCH_ROWS = 1 << 17


def by_key(rows: Any, judges: Sequence[Judge], runs: Runs) -> Any:
    """A DataFrame of history rows → a DataFrame of `FINDINGS`, for judges of one grouping: one shuffle, one sort.

    A judge that picks its rows takes a shuffle by queue more.
    """
    (grouping,) = {judge.grouping for judge in judges}
    picks = any(judge.pick for judge in judges)
    sizes = (pieces.LONG_ROWS, pieces.PIECE_ROWS)
    if picks:
        (judge,) = judges
        rows = _together(rows, judges, QUEUES, whole=False)
        picking = partial(_pick_batches, judge=judge, runs=runs, sizes=sizes)
        rows = on_workers(rows, picking, rows.schema)
    judging = partial(
        _judge_batches, grouping=grouping, judges=tuple(judges), runs=runs, sizes=sizes
    )
    return on_workers(_together(rows, judges, grouping, ready=picks), judging, FINDINGS)


def _together(
    rows: Any,
    judges: Sequence[Judge],
    grouping: Grouping,
    *,
    whole: bool = True,
    ready: bool = False,
) -> Any:
    """The rows that these judges need, key by key and by seq_begin; not whole: those without a key as well."""
    from pyspark.sql import functions as F

    names = list(dict.fromkeys([*columns_of(judges, grouping), *IN_PIECES.get(grouping, ())]))
    if not ready:
        rows = rows.where(relevant_where(judges))
        if SOURCE in names:
            origin = F.when(F.col("origin_id") != "", F.col("origin_id"))
            rows = rows.withColumn(
                SOURCE, F.coalesce(origin, F.col("message_id"), F.col("origin_id"))
            )
    for name in grouping.must_have if whole else ():
        rows = rows.where(F.col(name).isNotNull())
    return (
        rows.select(*names)
        .repartition(*grouping.columns)
        .sortWithinPartitions(*grouping.columns, "seq_begin")
    )


def _judge_batches(
    batches: Iterator[pa.RecordBatch],
    *,
    grouping: Grouping,
    judges: Sequence[Judge],
    runs: Runs,
    sizes: tuple[int, int],
) -> Iterator[pa.RecordBatch]:
    """sizes: of a long key, and of its pieces, in rows."""
    with Scratch("judging") as folder:
        long = Long(*sizes, folder, runs) if grouping in IN_PIECES else None
        for some in judge_sorted(batches, judges, grouping, runs, long):
            yield to_batch(some)


def judge_sorted(
    batches: Iterable[pa.RecordBatch],
    judges: Sequence[Judge],
    grouping: Grouping,
    runs: Runs,
    long: Long | None,
) -> Iterator[Iterable[Findings | Balance]]:
    """What is found in sorted batches: of whole keys, or of each key that is held in pieces."""
    for each in whole_or_long(batches, grouping.columns, long):
        if isinstance(each, Pieces):
            balances = Balances()
            for piece in each.beside_what_matters():
                for sign, table in ((1, piece.both), (-1, piece.carried)):
                    balances.add(judge_table(table, judges, runs), sign)
                    gc.collect(1)  # rows and what is derived of them know each other, and are large
            yield balances
        else:
            yield judge_table(each, judges, runs)
            gc.collect(1)


def _pick_batches(
    batches: Iterator[pa.RecordBatch], *, judge: Judge, runs: Runs, sizes: tuple[int, int]
) -> Iterator[pa.RecordBatch]:
    with Scratch("judging") as folder:
        for each in whole_or_long(batches, QUEUES.columns, Long(*sizes, folder, runs)):
            if isinstance(each, Pieces):
                known: set[int] = set()
                for piece in each.beside_what_matters():
                    rows = Rows(piece.both, runs)
                    where = picked_anew(judge, rows, known)
                    some = rows.table.take(pa.array(where))
                    del rows
                    gc.collect(1)  # as where they are judged
                    yield from some.to_batches()
            else:
                yield from picked(each, judge, runs).to_batches()


def picked_anew(judge: Judge, rows: Rows, known: set[int]) -> Ints:
    """What a judge picks of a piece of a queue and the rows that are carried into it.

    known: the seqs of what was picked before; what is picked now is added.
    """
    assert judge.pick is not None
    new = [at for at in judge.pick(rows).tolist() if int(rows.begin[at]) not in known]
    known.update(rows.begin[new].tolist())
    return np.asarray(new, np.int64)


def picked(table: pa.Table, judge: Judge, runs: Runs) -> pa.Table:
    """The rows of whole queues that a judge picks, and all those of no queue."""
    if judge.pick is None:
        return table
    has_queue = table.column("queue_id").is_valid()
    queued, others = table.filter(has_queue), table.filter(pc.invert(has_queue))
    if queued.num_rows:
        rows = Rows(queued, runs)
        queued = rows.table.take(pa.array(judge.pick(rows)))
    return pa.concat_tables([queued, others])


def in_order(
    table: pa.Table, grouping: Grouping, size: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """The rows key by key and by seq_begin, in batches of so many rows."""
    table = table.combine_chunks()
    for number, name in enumerate(table.column_names):
        if name in grouping.columns and pa.types.is_string(table.schema.field(name).type):
            # Texts are told apart once, for the order and for all judges.
            table = table.set_column(number, name, table.column(name).dictionary_encode())
    table = table.unify_dictionaries()
    order = order_of(table, grouping)
    for start in range(0, len(order), size):
        yield from table.take(pa.array(order[start : start + size])).combine_chunks().to_batches()


@dataclass(frozen=True, slots=True)
class Long:
    """What becomes of a key of more than `rows` rows. folder: for its pieces."""

    rows: int
    piece_rows: int
    folder: str
    runs: Runs


def whole_or_long(
    batches: Iterable[pa.RecordBatch],
    columns: Sequence[str],
    long: Long | None,
    least: int = CHUNK_ROWS,
) -> Iterator[Any]:
    """Sorted batches, cut and joined so that every table holds whole keys: as few tables as `least` rows each allow.

    long: what becomes of a key of many rows, which comes as its `Pieces`; what names no queue comes in tables as it
    comes. None: a key comes whole, however long it is.
    """
    batches = iter(batches)
    least = least if long is None else min(least, long.rows)
    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting_rows + batch.num_rows >= least:
            start = last_key_start(batch, columns)
            joined = start == 0 and bool(waiting) and same_key(waiting[-1], batch, columns)
            if joined and long is not None and waiting_rows + batch.num_rows > long.rows:
                # Nobody needs together what names no queue.
                joined = columns != QUEUES.columns or key_at(batch, 0, columns)[-1] is not None
                if joined:
                    waiting.append(batch)
                    before, queue, rest = _long_one(waiting, batches, columns, long)
                    if before.num_rows:
                        yield before
                    yield queue
                    if rest is None:
                        return
                    waiting, waiting_rows, batch = [], 0, rest
            if not joined:
                ready = [*waiting, batch.slice(0, start)] if start else waiting
                waiting, waiting_rows, batch = [], 0, batch.slice(start)
                if ready:
                    yield _in_one(ready)
        waiting.append(batch)
        waiting_rows += batch.num_rows
    if waiting:
        yield _in_one(waiting)


def _long_one(
    begun: list[pa.RecordBatch],
    batches: Iterator[pa.RecordBatch],
    columns: Sequence[str],
    long: Long,
) -> tuple[pa.Table, Pieces, pa.RecordBatch | None]:
    """The keys before a long one, its pieces, and the first batch of what follows it, if anything does.

    begun: batches that end within the long key, which are let go. batches: what comes next; read to the key's end.
    """
    key, table = key_at(begun[-1], 0, columns), _in_one(begun)
    start = last_key_start(table, columns)
    queue = Pieces(long.folder, long.runs, long.piece_rows)
    queue.take(table.slice(start))
    before = table.slice(0, start) if start else table.schema.empty_table()
    del table  # it is large, and much is read from here on
    for batch in batches:
        mine = length_of(batch, key, columns)
        if mine:
            queue.take(pa.Table.from_batches([batch.slice(0, mine)]))
        if mine < batch.num_rows:
            return before, queue, batch.slice(mine)
    return before, queue, None


def length_of(batch: pa.RecordBatch, key: tuple[Any, ...], columns: Sequence[str]) -> int:
    """How many rows at the batch's start have this key. The batch is sorted: find the end by halving."""
    low, high = 0, batch.num_rows
    while low < high:
        middle = (low + high) // 2
        if key_at(batch, middle, columns) == key:
            low = middle + 1
        else:
            high = middle
    return low


def _in_one(batches: list[pa.RecordBatch]) -> pa.Table:
    """A table of these batches, each column in one piece; the batches are let go."""
    table = pa.Table.from_batches(batches)
    batches.clear()
    return table.combine_chunks()


def _codes(batch: pa.RecordBatch, name: str) -> Any:
    column = batch.column(batch.schema.get_field_index(name))
    return numbers_of(column) if pa.types.is_integer(column.type) else encoded(column)[0]


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
