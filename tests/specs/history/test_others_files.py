"""What pandas, Spark and whoever else write is read as if we had written it; what can't be is one sentence."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specs.clauses.catalogue import get
from specs.errors import HistoryError
from specs.history.arrow import is_ours
from specs.history.columns import COLUMNS, NAMES
from specs.history.files import open_any
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import open_history, rows_to_table, write_history
from specs.history.text import parse_history

_, ROWS = parse_history(get("CMT-5").shortest_violation)
TABLE = rows_to_table(ROWS)
PLAIN = pa.table(
    {
        column.name: TABLE.column(column.name).cast(
            pa.string() if column.type == "string" else pa.int64()
        )
        for column in COLUMNS
    }
)
"""The same without our types and our footer."""
USED = [name for name in NAMES if TABLE.column(name).null_count < TABLE.num_rows]


def as_pandas(path: Path) -> None:
    """Columns of numbers with gaps are numbers with a point, columns of nulls have no type, an index may be kept."""
    frame = PLAIN.to_pandas()
    frame.index = pd.Index(range(5, 5 + len(frame)))
    frame.to_parquet(path)


def as_spark(path: Path) -> None:
    """Columns that nobody has anything for are left out; the writer names no version."""
    pq.write_table(PLAIN.select(USED), path)


def in_another_order(path: Path) -> None:
    pq.write_table(PLAIN.select(list(reversed(NAMES))), path)


def with_small_numbers(path: Path) -> None:
    types = {"string": pa.large_string(), "int64": pa.int32()}
    small = {c.name: PLAIN.column(c.name).cast(types[c.type]) for c in COLUMNS}
    small["seq_begin"] = PLAIN.column("seq_begin").cast(pa.uint8())
    small["value"] = PLAIN.column("value").cast(pa.decimal128(20, 0))
    pq.write_table(pa.table(small), path)


def with_dictionaries(path: Path) -> None:
    texts = {c.name for c in COLUMNS if c.type == "string"}
    pq.write_table(
        pa.table(
            {
                name: PLAIN.column(name).dictionary_encode()
                if name in texts
                else PLAIN.column(name)
                for name in NAMES
            }
        ),
        path,
    )


OTHERS = [as_pandas, as_spark, in_another_order, with_small_numbers, with_dictionaries]


@pytest.mark.parametrize("write", OTHERS, ids=lambda each: each.__name__)
def test_a_file_of_others_is_read_as_ours(write: Callable[[Path], None], tmp_path: Path) -> None:
    """Alone, and as a part of a folder; without a run.json somebody is told what was assumed."""
    path = tmp_path / "mine.parquet"
    write(path)
    alone, folder = open_any(path, io.BytesIO()), open_any(tmp_path, io.BytesIO())
    assert list(alone.rows()) == list(folder.rows()) == ROWS
    assert alone.info == folder.info == RunInfo(run="example", closed_world=False)
    for history in (alone, folder):
        (note,) = history.notes
        assert note.startswith("no run.json describes")
        assert "open world" in note


@pytest.mark.parametrize("inside", [True, False], ids=["in history/", "as Spark leaves them"])
def test_several_parts_are_one_history(inside: bool, tmp_path: Path) -> None:
    """Of Parquet and of JSON lines, beside what Spark hides; a run.json in the folder describes them."""
    for folder, write in (
        (tmp_path / "parquet", lambda table, path: pq.write_table(table, f"{path}.parquet")),
        (tmp_path / "json", lambda table, path: _as_json(table, Path(f"{path}.json"))),
        (tmp_path / "lines", lambda table, path: _as_json(table, Path(f"{path}.jsonl"))),
    ):
        rows = folder / "history" if inside else folder
        rows.mkdir(parents=True)
        for number in range(len(ROWS)):
            write(PLAIN.slice(len(ROWS) - 1 - number, 1), rows / f"part-{number:05d}-a7")
        (rows / "_SUCCESS").touch()
        (rows / ".part-00000-a7.parquet.crc").touch()
        assert list(open_history(folder).rows()) == ROWS
        described = RunInfo(run="example", seed=4, profile="reference")
        write_runinfo(folder, described)
        assert (open_history(folder).info, open_history(folder).notes) == (described, ())


def _as_json(table: pa.Table, path: Path) -> None:
    path.write_text(
        "".join(
            json.dumps({name: value for name, value in row.items() if value is not None}) + "\n"
            for row in table.to_pylist()
        ),
        encoding="utf-8",
    )


def test_json_of_pandas_has_numbers_with_a_point(tmp_path: Path) -> None:
    """A column of numbers with gaps."""
    PLAIN.to_pandas().to_json(tmp_path / "rows.json", orient="records", lines=True)
    assert ".0," in (tmp_path / "rows.json").read_text(encoding="utf-8")
    assert list(open_history(tmp_path).rows()) == ROWS


def test_what_we_write_needs_no_change(tmp_path: Path) -> None:
    """And a folder that is a part of a history is not one by itself."""
    write_history(tmp_path, RunInfo(run="example"), ROWS)
    (part,) = (tmp_path / "history").iterdir()
    assert is_ours(pq.read_schema(part))
    assert not is_ours(PLAIN.select(USED).schema)
    with pytest.raises(HistoryError, match="is a part of the history"):
        open_history(tmp_path / "history")


def _with(name: str, values: list[object], kind: object = None) -> pa.Table:
    return PLAIN.set_column(NAMES.index(name), name, pa.array(values, kind))


SOME = len(ROWS)
WRONG: dict[str, tuple[pa.Table, str]] = {
    "a misspelt column": (
        PLAIN.rename_columns(["seq_beginn" if name == "seq_begin" else name for name in NAMES]),
        "lacks the columns seq_begin; is seq_beginn meant to be seq_begin[?]$",
    ),
    "a misspelt one that may be missing": (
        PLAIN.rename_columns(["message" if name == "message_id" else name for name in NAMES]),
        "has the unknown columns message; is message meant to be message_id[?]$",
    ),
    "a part of a number": (_with("value", [1.5] * SOME), "a value of value that is no int64"),
    "too large a number": (
        _with("value", [2**64 - 1] * SOME, pa.uint64()),
        "a value of value that is no int64",
    ),
    "a part of a decimal": (
        _with("value", [Decimal("1.5")] * SOME, pa.decimal128(20, 1)),
        "a value of value that is no int64",
    ),
    "text for a number": (_with("value", ["1"] * SOME), "has value as string; it must be int64$"),
    "a number for text": (_with("topic", [1] * SOME), "has topic as int64; it must be string$"),
    "a moment": (
        _with("started_us", [0] * SOME, pa.timestamp("us")),
        r"has started_us as timestamp\[us\]; it must be int64$",
    ),
    "nulls": (
        _with("kind", [None] * SOME),
        f"holds {SOME} rows without kind, which every row must have$",
    ),
    "an unknown word": (_with("kind", ["dance"] * SOME), "the unknown word 'dance'$"),
    "no rows": (PLAIN.slice(0, 0), "holds no events: there is nothing to judge$"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_history_is_one_sentence(name: str, tmp_path: Path) -> None:
    """HistoryError (exit 64), in one line."""
    table, words = WRONG[name]
    pq.write_table(table, tmp_path / "rows.parquet")
    for source in (tmp_path, tmp_path / "rows.parquet"):
        with pytest.raises(HistoryError, match=words) as raised:
            list(open_any(source, io.BytesIO()).rows())
        assert raised.value.exit_code == 64
        assert "\n" not in str(raised.value)


def test_a_folder_of_other_json_is_no_history(tmp_path: Path) -> None:
    """A plan or a package's description is not taken for rows."""
    (tmp_path / "package.json").write_text('{"name": "mine"}', encoding="utf-8")
    with pytest.raises(HistoryError, match=r"it has no run\.json"):
        open_history(tmp_path)
