"""Rewrites a history in the order of its queues, in which it is judged without a shuffle.

Rows by (run, topic, broker, queue_id, seq_begin), nothing first; nothing else changes. A history of a few million
rows is sorted in this process, a larger one on Spark, with one shuffle by range.
"""

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_checkers.ordered import row_groups
from spark_checkers.session import on_workers, open_session
from spark_checkers.writing import BY_QUEUE, ROWS_PER_FILE, HistoryWriter
from specs.errors import UsageError
from specs.facts.groupings import QUEUES
from specs.history.arrow import in_our_schema, tables
from specs.history.columns import COLUMNS, NAMES
from specs.history.runinfo import write_runinfo
from specs.history.store import History, open_history, rows_to_table, write_history
from specs.scratch import Scratch

IN_MEMORY_ROWS = 3_000_000
"""More rows than these are sorted on Spark."""
ORDER = (*QUEUES.columns, "seq_begin")


def compact(
    history: History, folder: Path, *, master: str | None = None, in_memory: int = IN_MEMORY_ROWS
) -> History:
    """Write the history to another folder (which may exist, empty) by queue, and open it.

    Raises UsageError where the folder holds something, or where Spark is needed and there is no Java.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: a history is written to a folder of its own")
    _groups, sizes = row_groups(history.parquet)
    if not (sum(sizes) or history.loaded):
        return write_history(folder, history.info, (), why_cut=history.why_cut)
    folder.mkdir(parents=True, exist_ok=True)
    write_runinfo(folder, history.info)
    if sum(sizes) <= in_memory:
        _sort_here(history, folder)
    else:
        with Scratch("compact") as scratch:
            paths = [
                in_our_schema(path, Path(scratch) / f"part-{number:05d}.parquet")
                for number, path in enumerate(history.parquet)
            ]
            sort_on_spark(open_session(master), paths, folder, sum(sizes))
    cut = history.folder / "history" / "cut.txt"
    if cut.is_file():
        shutil.copy(cut, folder / "history" / "cut.txt")
    elif history.why_cut:
        (folder / "history" / "cut.txt").write_text(
            "\n".join(history.why_cut) + "\n", encoding="utf-8"
        )
    return open_history(folder)


def _sort_here(history: History, folder: Path) -> None:
    if history.parquet:
        table = pa.concat_tables(table for path in history.parquet for table in tables(path))
    else:
        table = rows_to_table(history.loaded)
    keys = pa.table({name: _plain(table.column(name)) for name in ORDER})
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending", "at_start") for name in ORDER])
    writer = HistoryWriter(folder, first_file=0)
    for start in range(0, table.num_rows, ROWS_PER_FILE):
        writer.write(as_history(table.take(order.slice(start, ROWS_PER_FILE))))
    writer.close()


def _plain(column: Any) -> Any:
    """Arrow sorts no dictionaries."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def as_history(table: pa.Table) -> pa.Table:
    """A table with texts as they come → the types of a history."""
    columns = []
    for column in COLUMNS:
        values = table.column(column.name)
        if column.dictionary and not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        columns.append(values)
    return pa.table(columns, names=list(NAMES))


def sort_on_spark(
    session: Any,
    paths: Sequence[Path],
    folder: Path,
    rows: int,
    *,
    by: Sequence[str] = ORDER,
    order: bytes = BY_QUEUE,
) -> None:
    """Write the rows of Parquet files in another order: one shuffle by range; the tasks write the files."""
    from pyspark.sql import functions as F

    files = max(1, -(-rows // ROWS_PER_FILE))
    keys = [F.col(name).asc_nulls_first() for name in by]
    table = session.read.parquet(*(str(path) for path in paths)).select(*NAMES)
    table = table.repartitionByRange(files, *keys).sortWithinPartitions(*keys)
    on_workers(table, partial(_write, folder=str(folder), order=order), "files int").toArrow()


def _write(
    batches: Iterator[pa.RecordBatch], *, folder: str, order: bytes
) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    number = context.partitionId() if context is not None else 0
    # Parts come in the order of the keys, and files are read in the order of their names.
    writer = HistoryWriter(
        Path(folder), order, first_file=number * 1000, rows_per_file=2 * ROWS_PER_FILE
    )
    for batch in batches:
        writer.write(as_history(pa.Table.from_batches([batch])))
    writer.close()
    yield pa.RecordBatch.from_arrays([pa.array([writer.files], pa.int32())], names=["files"])
