"""Whole keys, wherever files, row groups and batches are cut; and what is not in order is not believed."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from drawn import histories
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import recorded

from spark_checkers.keyed import whole_or_long
from spark_checkers.layout import compact
from spark_checkers.ordered import ORDER, Part, is_by_queue, part_tables, parts, row_groups
from spark_checkers.writing import BY_QUEUE, HistoryWriter
from specs.errors import HistoryError, UsageError
from specs.facts.groupings import GROUPINGS
from specs.history.columns import NAMES
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import open_history, rows_of_table, rows_to_table, write_history
from specs.vocabulary import Key


def by_queue(rows: list[Row]) -> list[Row]:
    """Nothing before all, and texts by their bytes."""

    def place(row: Row) -> tuple:
        return (
            *(
                (value is not None, value or 0)
                for value in (row.run, row.topic, row.broker, row.queue_id)
            ),
            row.seq_begin,
        )

    return sorted(rows, key=place)


def key(row: dict) -> tuple:
    return tuple(row[name] for name in ORDER)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories(), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(0, 99))
def test_every_key_is_whole_in_one_part(
    tmp_path_factory: pytest.TempPathFactory,
    history: tuple,
    per_group: int,
    per_file: int,
    wanted: int,
    seed: int,
) -> None:
    _info, rows = history
    folder = tmp_path_factory.mktemp("cut")
    ordered = by_queue(rows)
    writer = HistoryWriter(folder, rows_per_group=per_group, rows_per_file=per_file)
    cuts = random.Random(seed).sample(range(len(ordered) + 1), min(2, len(ordered)))
    writer.write(rows_to_table(ordered), file_before=cuts[:1], group_before=cuts[1:])
    writer.close()
    paths = sorted((folder / "history").glob("*.parquet"))
    assert is_by_queue(paths)
    groups, sizes = row_groups(paths)
    assert sum(sizes) == len(rows)
    seen: list[tuple] = []
    owners: dict[tuple, int] = {}
    for number, part in enumerate(parts(sizes, wanted)):
        for table in part_tables(groups, part, NAMES):
            for row in table.to_pylist():
                assert owners.setdefault(key(row), number) == number
                seen.append((*key(row), row["seq_begin"]))
    assert seen == [
        (row.run, row.topic, row.broker, row.queue_id, row.seq_begin) for row in ordered
    ]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 6), st.integers(1, 12))
def test_batches_become_whole_keys(keys: list[int], batch: int, least: int) -> None:
    ordered = sorted(keys)
    table = pa.table({"run": ["r"] * len(keys), "group": [f"g{number}" for number in ordered]})
    tables = list(
        whole_or_long(
            table.to_batches(max_chunksize=batch), GROUPINGS[Key.GROUP].columns, None, least
        )
    )
    assert [each for table in tables for each in table.column("group").to_pylist()] == table.column(
        "group"
    ).to_pylist()
    groups = [set(table.column("group").to_pylist()) for table in tables]
    assert sum(len(group) for group in groups) == len(set(ordered))


def test_files_that_claim_an_order_that_they_lack_are_an_error(tmp_path: Path) -> None:
    _, rows = recorded()
    writer = HistoryWriter(tmp_path, BY_QUEUE, rows_per_group=500)
    writer.write(rows_to_table(rows))
    writer.close()
    groups, _ = row_groups(sorted((tmp_path / "history").glob("*.parquet")))
    with pytest.raises(HistoryError, match="inorder compact"):
        list(part_tables(groups, Part(0, len(groups)), NAMES))


def test_a_compacted_history_holds_the_same_rows_by_queue(tmp_path: Path) -> None:
    info, rows = recorded()
    history = write_history(tmp_path / "seq", info, rows, why_cut=("alice.0.jsonl has no end",))
    written = compact(history, tmp_path / "queue")
    assert is_by_queue(written.parquet)
    assert written.why_cut == history.why_cut
    assert written.info == info
    assert list(written.rows()) == list(rows)
    table = [row for path in written.parquet for row in _rows_in(path)]
    assert table == by_queue(list(rows))


def _rows_in(path: Path) -> list[Row]:
    import pyarrow.parquet as pq

    return list(rows_of_table(pq.read_table(path)))


def test_a_history_without_rows_can_be_compacted_too(tmp_path: Path) -> None:
    write_history(tmp_path / "run", RunInfo("nothing"), [])
    compacted = compact(open_history(tmp_path / "run"), tmp_path / "compacted")
    assert list(compacted.rows()) == []


def test_a_journal_or_text_can_be_compacted_too(tmp_path: Path) -> None:
    info, rows = recorded()
    history = write_history(tmp_path / "text", info, rows, as_text=True)
    assert list(compact(open_history(history.folder), tmp_path / "queue").rows()) == list(rows)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    info, rows = recorded()
    history = write_history(tmp_path / "seq", info, rows)
    with pytest.raises(UsageError, match="is not empty"):
        compact(history, tmp_path / "seq")
