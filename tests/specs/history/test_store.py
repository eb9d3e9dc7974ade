"""A history is read as it was written, and anything else is one clear sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specs.clauses.catalogue import all_clauses, get
from specs.errors import HistoryError
from specs.history.arrow import VERSION_KEY, arrow_schema
from specs.history.columns import COLUMNS, NAMES, Column
from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo
from specs.history.store import (
    open_history,
    rows_to_table,
    write_history,
)
from specs.history.text import parse_history
from specs.profiles import load
from specs.verdicts.engine import judge
from specs.verdicts.examine import examine

INFO, ROWS = parse_history(get("CMT-5").shortest_violation)


def every_example() -> list[Row]:
    """Rows of all kinds, renumbered into one run."""
    rows: list[Row] = []
    for clause in all_clauses():
        _, example = parse_history(clause.lookalike)
        shift = len(rows) * 10 + 100
        rows += [
            row._replace(
                seq_begin=row.seq_begin + shift,
                seq_end=None if row.seq_end is None else row.seq_end + shift,
                op_id=row.op_id + shift,
            )
            for row in example
        ]
    return sorted(rows, key=lambda row: row.seq_begin)


@pytest.mark.parametrize("as_text", [False, True], ids=["parquet", "json lines"])
def test_what_is_written_is_read(as_text: bool, tmp_path: Path) -> None:
    """Rows, description and marks of a cut, in either format."""
    info = RunInfo(run="example", seed=3, target="reference")
    rows = every_example()
    written = write_history(
        tmp_path, info, rows, why_cut=["c1.0.jsonl has no end"], as_text=as_text
    )
    opened = open_history(str(tmp_path))
    assert list(written.rows()) == list(opened.rows()) == rows
    assert list(opened.rows()) == rows, "it can be read twice"
    assert opened.info == info
    assert opened.cut
    assert opened.why_cut == ("c1.0.jsonl has no end",)


@pytest.mark.parametrize("as_text", [False, True], ids=["parquet", "json lines"])
def test_an_empty_history_is_a_history(as_text: bool, tmp_path: Path) -> None:
    """No rows, no complaint."""
    write_history(tmp_path, RunInfo(run="r"), [], as_text=as_text)
    assert list(open_history(tmp_path).rows()) == []


def test_several_files_are_read_in_order(tmp_path: Path) -> None:
    """Files that interleave, and one that is in no order at all."""
    rows = every_example()
    write_history(tmp_path, RunInfo(run="example"), rows[::3])
    pq.write_table(rows_to_table(rows[1::3]), tmp_path / "history" / "part-1.parquet")
    unordered = rows_to_table(list(reversed(rows[2::3])))
    pq.write_table(
        unordered.replace_schema_metadata({VERSION_KEY: b"1"}),
        tmp_path / "history" / "part-2.parquet",
    )
    assert list(open_history(tmp_path).rows()) == rows


def test_two_runs_in_one_history_are_judged_one_after_the_other(tmp_path: Path) -> None:
    """Nothing of one run is known in the next, and its numbers begin anew."""
    info, rows = parse_history(get("SND-1").shortest_violation)
    second = [row._replace(run="later") for row in rows]
    write_history(tmp_path, info, [*rows, *second])
    history = open_history(tmp_path)
    examination = examine(history.rows(), history.info)
    assert examination.facts.broken == []
    assert examination.tallies["SND-1"].violations == 2


def test_the_engine_judges_a_stored_history(tmp_path: Path) -> None:
    """Same verdict from the file as from the rows."""
    history = write_history(tmp_path, INFO, ROWS)
    verdict = judge(history, load("reference"))
    assert [judged.id for judged in verdict.clauses if judged.violations] == ["CMT-5"]
    assert (
        judge(history, load("rocketmq-5-orderly")).exit_code == 1
    )  # while shutting down alone it would be allowed
    assert verdict.exit_code == 1


def no_folder(folder: Path) -> None:
    folder.rmdir()


def no_run_json(folder: Path) -> None:
    (folder / "history").mkdir()


def no_rows(folder: Path) -> None:
    write_history(folder, INFO, ROWS)
    (folder / "history" / "part-0.parquet").unlink()


def torn_parquet(folder: Path) -> None:
    write_history(folder, INFO, ROWS)
    path = folder / "history" / "part-0.parquet"
    path.write_bytes(path.read_bytes()[:-100])


def empty_parquet(folder: Path) -> None:
    write_history(folder, INFO, ROWS)
    (folder / "history" / "part-0.parquet").write_bytes(b"")


def spoiled_parquet(folder: Path) -> None:
    write_history(folder, INFO, ROWS)
    path = folder / "history" / "part-0.parquet"
    data = bytearray(path.read_bytes())
    data[4:300] = bytes(296)
    path.write_bytes(bytes(data))


def _rewrite(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    write_history(folder, INFO, ROWS)
    pq.write_table(change(rows_to_table(ROWS)), folder / "history" / "part-0.parquet")


def unknown_version(folder: Path) -> None:
    _rewrite(folder, lambda table: table.replace_schema_metadata({VERSION_KEY: b"99"}))


def unknown_column(folder: Path) -> None:
    _rewrite(folder, lambda table: table.append_column("mood", pa.array(["fine"] * table.num_rows)))


def missing_column(folder: Path) -> None:
    _rewrite(folder, lambda table: table.drop_columns(["op_id"]))


def wrong_type(folder: Path) -> None:
    index = NAMES.index("started_us")

    def spoil(table: pa.Table) -> pa.Table:
        return table.set_column(index, "started_us", table.column("started_us").cast(pa.string()))

    _rewrite(folder, spoil)


def missing_value(folder: Path) -> None:
    index = NAMES.index("op_id")

    def spoil(table: pa.Table) -> pa.Table:
        return table.set_column(index, "op_id", pa.array([None] * table.num_rows, pa.int64()))

    _rewrite(folder, spoil)


def unknown_word(folder: Path) -> None:
    index = NAMES.index("kind")

    def spoil(table: pa.Table) -> pa.Table:
        return table.set_column(index, "kind", pa.array(["dance"] * table.num_rows))

    _rewrite(folder, spoil)


def _json_lines(folder: Path, text: bytes) -> None:
    write_history(folder, INFO, ROWS, as_text=True)
    (folder / "history" / "rows.jsonl").write_bytes(text)


def _line(**changes: object) -> bytes:
    row = {name: value for name, value in ROWS[0]._asdict().items() if value is not None}
    return json.dumps({**row, **changes}).encode()


def torn_line(folder: Path) -> None:
    _json_lines(folder, _line() + b"\n" + _line()[:20])


def line_of_bytes(folder: Path) -> None:
    _json_lines(folder, b"\xff\xfe\n")


def line_that_is_no_object(folder: Path) -> None:
    _json_lines(folder, b"[1, 2]")


def line_with_unknown_column(folder: Path) -> None:
    _json_lines(folder, _line(mood="fine"))


def line_with_unknown_word(folder: Path) -> None:
    _json_lines(folder, _line(outcome="splendid"))


def line_with_text_for_a_number(folder: Path) -> None:
    _json_lines(folder, _line(seq_begin="1"))


def line_without_a_time(folder: Path) -> None:
    _json_lines(folder, _line(started_us=None))


def _run_json(folder: Path, text: str) -> None:
    write_history(folder, INFO, ROWS)
    (folder / "run.json").write_text(text, encoding="utf-8")


def run_json_torn(folder: Path) -> None:
    _run_json(folder, '{"schema": ')


def run_json_no_object(folder: Path) -> None:
    _run_json(folder, "[]")


def run_json_of_another_version(folder: Path) -> None:
    _run_json(folder, json.dumps({"schema": "inorder/run/v9", "run": "r"}))


def run_json_without_run(folder: Path) -> None:
    _run_json(folder, json.dumps({"schema": "inorder/run/v1"}))


def run_json_with_a_wrong_shape(folder: Path) -> None:
    _run_json(folder, json.dumps({"schema": "inorder/run/v1", "run": "r", "parties": 3}))


def _with(folder: Path, **fields: object) -> None:
    _run_json(folder, json.dumps({"schema": "inorder/run/v2", "run": "r", **fields}))


def run_json_with_a_misspelt_field(folder: Path) -> None:
    _with(folder, closed_word=True)


def run_json_with_an_unknown_kind(folder: Path) -> None:
    _with(folder, records={"client": ["dance"]})


def run_json_with_a_misspelt_number(folder: Path) -> None:
    _with(folder, config={"system": "rocketmq", "batsh": 1})


def verdict_torn(folder: Path) -> None:
    write_history(folder, INFO, ROWS)
    (folder / "verdict.json").write_text("{", encoding="utf-8")


def verdict_no_object(folder: Path) -> None:
    write_history(folder, INFO, ROWS)
    (folder / "verdict.json").write_text("3", encoding="utf-8")


def _journal(folder: Path, text: bytes) -> None:
    write_history(folder, INFO, ROWS)
    (folder / "history" / "part-0.parquet").unlink()
    (folder / "journal").mkdir()
    (folder / "journal" / "c1.0.jsonl").write_bytes(text)


OPEN = b'{"e":"open","version":1,"process":"c1","clock":"host"}\n'


def journal_of_another_version(folder: Path) -> None:
    _journal(folder, b'{"e":"open","version":9}\n')


def journal_broken_in_the_middle(folder: Path) -> None:
    _journal(folder, OPEN + b'{"e":"no\n{"e":"close","t":1}\n')


def journal_with_an_event_that_is_none(folder: Path) -> None:
    _journal(folder, OPEN + b"3\n")


def journal_with_an_unknown_event(folder: Path) -> None:
    _journal(folder, OPEN + b'{"e":"dance","t":1}\n')


def journal_with_an_end_without_begin(folder: Path) -> None:
    _journal(folder, OPEN + b'{"e":"end","op":4,"t":1,"outcome":"ok"}\n')


def journal_without_a_time(folder: Path) -> None:
    _journal(folder, OPEN + b'{"e":"note","kind":"join","outcome":"ok","fields":{}}\n')


WRONG = {
    no_folder: "there is no such folder",
    no_run_json: "it has no run.json",
    no_rows: "neither history/ files nor a journal/",
    torn_parquet: "is torn or no Parquet file",
    empty_parquet: "is torn or no Parquet file",
    spoiled_parquet: "can't be read as Parquet",
    unknown_version: "is history version 99; this version reads 1 to",
    unknown_column: "has the unknown columns mood",
    missing_column: "lacks the columns op_id",
    wrong_type: "has started_us as string; it must be int64",
    missing_value: "rows without op_id",
    unknown_word: "the unknown word 'dance'",
    torn_line: "line 2 is no history row",
    line_of_bytes: "line 1 is no history row",
    line_that_is_no_object: "it is no object",
    line_with_unknown_column: "no such column: mood",
    line_with_unknown_word: "splendid",
    line_with_text_for_a_number: "seq_begin must be int64, not '1'",
    line_without_a_time: "it lacks started_us",
    run_json_torn: "is not JSON",
    run_json_no_object: "is not a JSON object",
    run_json_of_another_version: "'inorder/run/v9'; this version reads inorder/run/v1 to v2; a newer inorder wrote it",
    run_json_without_run: r"run\.json: the field 'run' is missing$",
    run_json_with_a_wrong_shape: r"run\.json: 'parties' must be an object$",
    run_json_with_a_misspelt_field: "unknown field 'closed_word'; did you mean 'closed_world'[?]$",
    run_json_with_an_unknown_kind: "records names the unknown word 'dance'",
    run_json_with_a_misspelt_number: "run.json, config: unknown configuration: batsh",
    verdict_torn: "verdict.json is not JSON",
    verdict_no_object: "verdict.json is not a JSON object",
    journal_of_another_version: "is journal version 9",
    journal_broken_in_the_middle: "line 2 is not JSON, and it is not the last one",
    journal_with_an_event_that_is_none: "line 2 is no journal event",
    journal_with_an_unknown_event: "unknown kind 'dance'",
    journal_with_an_end_without_begin: "ends without a begin",
    journal_without_a_time: "can't be read",
}


@pytest.mark.parametrize("spoil", WRONG, ids=lambda each: each.__name__)
def test_wrong_input_is_one_sentence(spoil: Callable[[Path], None], tmp_path: Path) -> None:
    """HistoryError (exit 64), with the place, in one line, when it is opened or read."""
    folder = tmp_path / "run"
    folder.mkdir()
    spoil(folder)
    with pytest.raises(HistoryError, match=WRONG[spoil]) as raised:
        list(open_history(folder).rows())
    assert raised.value.exit_code == 64
    assert "\n" not in str(raised.value)


REQUIRED = [column for column in COLUMNS if column.required]


@pytest.mark.parametrize("column", REQUIRED, ids=lambda each: each.name)
@pytest.mark.parametrize("as_null", [False, True], ids=["missing", "null"])
def test_a_line_without_a_required_column_is_refused(
    column: Column, as_null: bool, tmp_path: Path
) -> None:
    """It is not guessed: a row without its outcome would be read as an unknown one, and turn a verdict."""
    row = json.loads(_line(**{column.name: None}))
    _json_lines(
        tmp_path,
        json.dumps(row if as_null else {k: v for k, v in row.items() if v is not None}).encode(),
    )
    with pytest.raises(HistoryError, match=f"line 1 is no history row: it lacks {column.name}$"):
        open_history(tmp_path)


@pytest.mark.parametrize("column", REQUIRED, ids=lambda each: each.name)
@pytest.mark.parametrize("counted", [True, False], ids=["footer", "no statistics"])
def test_parquet_without_a_required_value_is_refused(
    column: Column, counted: bool, tmp_path: Path
) -> None:
    """When it is opened, so that no engine judges it, also where the footer counts no nulls."""
    table = rows_to_table(ROWS)
    index = NAMES.index(column.name)
    field = table.schema.field(index).with_nullable(True)
    values = pa.array([None, *table.column(index).to_pylist()[1:]], field.type)
    write_history(tmp_path, INFO, ROWS)
    path = tmp_path / "history" / "part-0.parquet"
    pq.write_table(table.set_column(index, field, values), path, write_statistics=counted)
    with pytest.raises(
        HistoryError, match=rf"part-0.parquet holds 1 rows without {column.name}, which every row"
    ):
        open_history(tmp_path)


def test_the_arrow_schema_is_made_from_the_columns() -> None:
    """One definition: names, order, types, which are required, and the version."""
    schema = arrow_schema()
    assert schema.names == list(NAMES) == list(Row._fields)
    assert [field.nullable for field in schema] == [not column.required for column in COLUMNS]
    assert schema.metadata == {VERSION_KEY: b"2"}


def test_a_row_is_made_of_known_columns_and_words() -> None:
    """A misspelt column or word is an error, not a default."""
    with pytest.raises(KeyError, match="no such column: mood"):
        make_row(mood="fine")
    with pytest.raises(ValueError, match="dance"):
        make_row(kind="dance")
