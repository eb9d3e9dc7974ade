"""DataFrames judged: the Python engine's verdict, findings as rows, one clear sentence for what is no history."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import SPARK
from recorded import recorded

import spark_checkers
from spark_checkers import session as session_module
from spark_checkers.session import packages
from spark_checkers.trace_mutants import DEFECTS, plant, spread
from specs import profiles
from specs.errors import HistoryError, SpecError, UsageError
from specs.history.columns import NAMES
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import open_history, rows_to_table, write_history
from specs.verdicts import engine as python_engine
from specs.verdicts.examine import examine
from specs.vocabulary import Kind

pytestmark = [*SPARK, pytest.mark.timeout(900)]


def planted() -> tuple[RunInfo, list[Row]]:
    info, rows = recorded()
    return info, list(plant(DEFECTS["second-owner"], spread(rows), info, seed=2).rows)


def frame_of(session: Any, folder: Path, rows: list[Row]) -> Any:
    """In an order of no meaning, as a log may come."""
    mixed = list(rows)
    random.Random(3).shuffle(mixed)
    pq.write_table(rows_to_table(mixed), folder / "rows.parquet")
    return session.read.parquet(str(folder / "rows.parquet"))


def context_of_pyspark_alone(session: Any) -> Any:
    """PySpark's classic sessions use it themselves; we may not, for Spark Connect has none."""
    asks = sys._getframe(1).f_globals["__name__"]
    assert not asks.startswith("spark_checkers."), asks
    return session._sc


@pytest.mark.long
def test_a_frame_gives_the_verdict_of_the_python_engine_and_every_finding(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `sparkContext`, which Spark Connect lacks; so our packages are shipped as well."""
    from pyspark.sql import SparkSession

    info, rows = planted()
    expected = python_engine.judge(
        write_history(tmp_path / "h", info, rows), profiles.load("reference")
    ).to_json()
    frame = frame_of(session, tmp_path, rows)
    shipped: list[str] = []
    monkeypatch.setattr(SparkSession, "sparkContext", property(context_of_pyspark_alone))
    monkeypatch.setattr(
        SparkSession,
        "addArtifacts",
        lambda _, path, pyfile: shipped.append(path) if pyfile else None,
    )
    monkeypatch.setattr(session_module, "is_local", lambda _: False)
    monkeypatch.setattr(session_module, "_SHIPPED", set())
    judged = spark_checkers.judge(frame, run=info, profile="reference")
    assert [Path(path).name for path in shipped] == ["inorder.zip"]
    found = judged.verdict.to_json()
    assert found.pop("tool") == {"engine": "spark"}
    expected.pop("tool")
    assert found == expected
    by_clause = {
        row["clause"]: row["count"] for row in judged.findings.groupBy("clause").count().collect()
    }
    told = {
        each["id"]: each["violations"] + each.get("possible", 0)
        for each in expected["clauses"]
        if each["violations"] or each.get("possible", 0)
    }
    assert told.items() <= by_clause.items()
    at_stake = {row["clause"]: row["opportunities"] for row in judged.opportunities.collect()}
    assert (
        at_stake.items()
        >= {
            each["id"]: each["opportunities"]
            for each in expected["clauses"]
            if each["opportunities"]
        }.items()
    )
    shown = judged.evidence.where("clause = 'LSE-1'").collect()
    assert {row["kind"] for row in shown} == {Kind.LOCK.value}
    verdicts = {row["clause"]: row["verdict"] for row in judged.verdicts.collect()}
    assert verdicts["LSE-1"] == "refuted"


@pytest.mark.long
def test_workers_of_a_local_session_run_the_python_that_asks(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that somebody made may name one that lacks our packages, and its own work keeps it."""
    info, rows = recorded()
    monkeypatch.setattr(session.sparkContext, "pythonExec", "/nowhere/python3")
    judged = spark_checkers.judge(frame_of(session, tmp_path, rows), run=info, clauses=["CMT-4"])
    assert judged.verdict.exit_code == 0
    assert session.sparkContext.pythonExec == "/nowhere/python3"


@pytest.mark.long
def test_rows_that_are_there_twice_are_told_or_dropped(session: Any, tmp_path: Path) -> None:
    info, rows = recorded()
    frame = frame_of(session, tmp_path, [*rows, *rows[40:43]])
    asked = {"run": info, "clauses": ["CMT-4"]}
    twice = spark_checkers.judge(frame, **asked).verdict
    assert twice.exit_code == 70
    assert f"seq {rows[40].seq_begin} does not follow seq {rows[40].seq_begin}" in str(
        twice.to_json()
    )
    once = spark_checkers.judge(frame, **asked, drop_duplicates=True).verdict
    assert once.exit_code == 0


@pytest.mark.long
def test_what_rows_must_tell_is_missed(session: Any, tmp_path: Path) -> None:
    info, rows = recorded()
    at = next(index for index, row in enumerate(rows) if row.kind is Kind.DELIVER)
    nobodys = [*rows[:at], rows[at]._replace(client_id=None), *rows[at + 1 :]]
    next_ = next(index for index, row in enumerate(rows) if row.kind is Kind.COMMIT)
    nobodys[next_] = rows[next_]._replace(value=None, incarnation=None)
    frame = frame_of(session, tmp_path, nobodys)
    judged = spark_checkers.judge(frame, run=info, clauses=["CMT-4"])
    assert judged.verdict.exit_code == 70
    expected = examine(nobodys, info).facts.broken
    assert f"seq {rows[at].seq_begin} is a deliver that names no client" in expected
    assert f"seq {rows[next_].seq_begin} is a commit that has no value" in expected
    assert any("names no incarnation" in why for why in expected)
    why = f"the history can't be trusted: {'; '.join(expected)}"
    assert str(judged.verdict).endswith(f": {why}")
    assert [row["reason"] for row in judged.verdicts.collect()] == [why]


def test_what_is_no_history_is_refused_before_any_job(session: Any, tmp_path: Path) -> None:
    info, rows = recorded()
    frame = frame_of(session, tmp_path, list(rows[:5]))
    judge = spark_checkers.judge
    with pytest.raises(HistoryError, match="the rows lack kind, which every history row must have"):
        judge(frame.drop("kind"), run=info, profile="reference")
    wrong = frame.withColumn("queue_offset", frame.queue_offset.cast("string"))
    with pytest.raises(HistoryError, match="queue_offset as string; it must be bigint"):
        judge(wrong, run=info, profile="reference")
    with pytest.raises(UsageError, match="give run="):
        judge(frame, profile="reference")
    with pytest.raises(UsageError, match="give profile="):
        judge(frame, run=RunInfo(info.run))


def test_one_clause_may_be_asked_for_by_its_id_alone(session: Any, tmp_path: Path) -> None:
    """Its letters are no clauses; an unknown one is refused by its whole name."""
    info, rows = recorded()
    frame = frame_of(session, tmp_path, rows)
    for asked in ("CMT-4", ["CMT-4"]):
        judged = spark_checkers.judge(frame, run=info, clauses=asked)
        assert [clause.id for clause in judged.clauses] == ["CMT-4"]
        assert judged.profile.claim("CMT-4").status == "claimed"
    with pytest.raises(SpecError, match="there is no clause CMT-99;"):
        spark_checkers.judge(frame, run=info, clauses="CMT-99")


@pytest.mark.long
def test_a_column_that_may_be_null_may_be_missing_and_another_may_be_there(
    session: Any, tmp_path: Path
) -> None:
    _info, rows = recorded()
    frame = frame_of(session, tmp_path, list(rows[:5]))
    given = frame.drop("wall_us").withColumn("day", frame.run)
    found = spark_checkers.conform(given.withColumn("queue_id", frame.queue_id.cast("int")))
    assert tuple(found.columns) == NAMES
    assert found.schema["queue_id"].dataType.simpleString() == "bigint"
    assert found.schema.fieldNames() == spark_checkers.schema().fieldNames()


def test_a_column_by_nearly_the_name_of_one_that_is_missing_is_refused(
    session: Any, tmp_path: Path
) -> None:
    """Left out, it would be a history in which hardly anything is at stake."""
    _info, rows = recorded()
    frame = frame_of(session, tmp_path, list(rows))
    renamed = frame.withColumnRenamed("queue_offset", "offset")
    with pytest.raises(HistoryError, match="unknown columns offset; is offset meant to be queue_o"):
        spark_checkers.conform(renamed)
    with pytest.raises(HistoryError, match="are a DataFrame of Spark, not list"):
        spark_checkers.conform([1])


def test_a_history_is_written_and_read_by_spark(session: Any, tmp_path: Path) -> None:
    info, rows = recorded()
    frame = frame_of(session, tmp_path, list(rows))
    spark_checkers.write_history(frame, f"file://{tmp_path}/written", info)
    again, told = spark_checkers.read_history(f"file://{tmp_path}/written", session)
    assert told == info
    assert again.count() == len(rows)
    ours = open_history(tmp_path / "written")
    assert (ours.info, len(list(ours.rows()))) == (info, len(rows)), "as any other history"
    with pytest.raises(HistoryError, match="holds a history already: give another folder"):
        spark_checkers.write_history(frame, f"file://{tmp_path}/written", info)
    with pytest.raises(HistoryError, match=r"nothing/run.json can't be read: "):
        spark_checkers.read_history(f"file://{tmp_path}/nothing", session)


def test_our_packages_work_from_a_zip(tmp_path: Path) -> None:
    """Workers elsewhere import them from it, transcripts and profiles included."""
    code = (
        "import specs, spark_checkers.engine, spark_checkers.frames\n"
        "from spark_checkers.catalogue import all_judges\n"
        "assert 'inorder.zip' in specs.__file__, specs.__file__\n"
        "print(len(all_judges()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"PYTHONPATH": str(packages(tmp_path)), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 70
