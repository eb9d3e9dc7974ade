"""Files that lie by queue, cut into parts: every row is in one part, and every key whole in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_checkers.generate import generate
from spark_checkers.ordered import ORDER, Part, part_tables, row_groups

EVENTS, QUEUES = 8_000, 6
Key = tuple[object, ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of which some keys span row groups and files, and some row groups hold several keys."""
    folder = tmp_path_factory.mktemp("by-queue") / "h"
    generate(folder, EVENTS, 5, queues=QUEUES, rows_per_file=2_000, rows_per_group=400)
    return folder / "history"


@pytest.mark.parametrize("step", [1, 2, 3, 5, 100])
def test_parts_share_the_rows_out_and_cut_no_key(folder: Path, step: int) -> None:
    groups, sizes = row_groups(sorted(folder.iterdir()))
    assert len(groups) > QUEUES
    cut = [Part(at, min(at + step, len(groups))) for at in range(0, len(groups), step)]
    seen: list[int] = []
    home: dict[Key, int] = {}
    for number, part in enumerate(cut):
        for table in part_tables(groups, part, [*ORDER, "seq_begin"]):
            rows = table.to_pylist()
            seen += [row["seq_begin"] for row in rows]
            for row in rows:
                assert home.setdefault(tuple(row[name] for name in ORDER), number) == number
    assert len(seen) == sum(sizes) == len(set(seen))
    assert len(home) > QUEUES  # the dead-letter queues, and the rows of none
