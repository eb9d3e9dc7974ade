"""On Spark itself: the judges as DataFrame to DataFrame, and the engine over both layouts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import SPARK
from drawn import histories
from hypothesis import HealthCheck, Phase, given, seed, settings
from judging import context_of, in_memory
from recorded import recorded

from spark_checkers import engine
from spark_checkers import session as session_module
from spark_checkers.catalogue import all_judges
from spark_checkers.generate import generate, plan_defect
from spark_checkers.jobs import OnSpark
from spark_checkers.keyed import by_key
from spark_checkers.layout import compact
from spark_checkers.trace_mutants import DEFECTS, plant, spread
from specs import profiles
from specs.clauses.catalogue import all_clauses, get
from specs.errors import HistoryError, TargetMisbehaved, UsageError
from specs.facts.judges import grouped, judges_of
from specs.facts.run_context import RunContext
from specs.history.columns import COLUMNS
from specs.history.row import Row
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import open_history, rows_to_table, write_history
from specs.history.text import parse_history
from specs.verdicts import engine as python_engine
from specs.verdicts.examine import examine

pytestmark = SPARK
DRAWN = 20


def named(name: str, history: tuple[RunInfo, list[Row]]) -> tuple[RunInfo, list[Row]]:
    info, rows = history
    return replace(info, run=name), [row._replace(run=name) for row in rows]


def many_runs() -> Iterator[tuple[RunInfo, list[Row]]]:
    """Both examples of every clause, and drawn histories: each a run of its own."""
    for clause in all_clauses():
        for number, text in enumerate((clause.shortest_violation, clause.lookalike)):
            yield named(f"{clause.id}-{number}", parse_history(text))
    drawn: list[tuple[RunInfo, list[Row]]] = []

    @seed(7)
    @settings(
        max_examples=DRAWN,
        phases=(Phase.generate,),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(histories())
    def draw(history: tuple[RunInfo, list[Row]]) -> None:
        drawn.append(history)

    draw()
    for number, history in enumerate(drawn):
        yield named(f"drawn-{number}", history)


def test_many_runs_at_once_are_judged_as_in_memory(session: Any, tmp_path: Path) -> None:
    """One DataFrame holds all runs; one job for each kind of key."""
    import pyarrow.parquet as pq

    contexts: dict[str, RunContext] = {}
    unmet: set[tuple[str, str]] = (
        set()
    )  # a judge alone knows no premise of the whole run: the engine leaves it out
    expected: dict[tuple[str, str], Any] = {}
    rows: list[Row] = []
    for info, its in many_runs():
        contexts[info.run] = context_of(its, info)
        for clause, found in in_memory(its, info, all_clauses()).items():
            expected[(info.run, clause)] = found
        unmet |= {
            (info.run, clause.id) for clause in all_clauses() if clause.unmet(info) is not None
        }
        rows += its
    random.Random(5).shuffle(rows)
    pq.write_table(rows_to_table(rows), tmp_path / "rows.parquet")
    frame = session.read.parquet(str(tmp_path / "rows.parquet"))
    seen = {place: (0, []) for place in expected}
    for _grouping, judges in grouped(all_judges()):
        for row in by_key(frame, judges, contexts).collect():
            if (row["run"], row["clause"]) in unmet:
                continue
            times, violations = seen[(row["run"], row["clause"])]
            if row["seqs"] is not None:
                violations.append((tuple(row["seqs"]), row["certain"], row["finding"]))
            seen[(row["run"], row["clause"])] = (times + row["opportunities"], violations)
    assert {
        place: (times, sorted(violations)) for place, (times, violations) in seen.items()
    } == expected


def test_one_judge_alone_is_a_function_from_rows_to_findings(session: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    clause = get("CMT-4")
    info, rows = parse_history(clause.shortest_violation)
    pq.write_table(rows_to_table(rows), tmp_path / "rows.parquet")
    frame = session.read.parquet(str(tmp_path / "rows.parquet"))
    contexts = {info.run: context_of(rows, info)}
    found = frame.transform(by_key, judges_of([clause]), contexts).collect()
    assert sorted(
        (row["seqs"], row["certain"], row["opportunities"]) for row in found if row["seqs"]
    ) == [([1, 2], True, 0)]
    assert [row["opportunities"] for row in found if row["seqs"] is None] == [1]


@pytest.mark.parametrize("layout", ["seq", "queue", "text"])
def test_the_verdict_is_that_of_the_python_engine(
    session: Any, tmp_path: Path, layout: str
) -> None:
    info, rows = recorded()
    changed = plant(DEFECTS["second-owner"], spread(rows), info, seed=2).rows
    history = write_history(tmp_path / "h", info, changed, as_text=layout == "text")
    if layout == "queue":
        history = compact(history, tmp_path / "queue")
    profile = profiles.load("reference")
    found = engine.judge(history, profile, {"session": session}).to_json()
    expected = python_engine.judge(history, profile).to_json()
    assert found.pop("tool") == {"engine": "spark"}
    expected.pop("tool")
    assert found == expected
    assert found["verdict"] == "refuted"


def test_sorting_on_spark_is_sorting_in_memory(session: Any, tmp_path: Path) -> None:
    info, rows = recorded()
    history = write_history(tmp_path / "h", info, rows)
    here = compact(history, tmp_path / "here")
    there = compact(history, tmp_path / "there", in_memory=0)
    import pyarrow.parquet as pq

    assert pq.read_table(there.parquet[0]).to_pylist() == pq.read_table(here.parquet[0]).to_pylist()
    assert engine.examine(there, OnSpark(session)) == examine(rows, info)


def test_a_generated_history_and_its_defect(session: Any, tmp_path: Path) -> None:
    generate(tmp_path / "good", 20_000, 1)
    good = engine.judge(
        open_history(tmp_path / "good"), profiles.load("reference"), {"session": session}
    )
    assert good.exit_code == 0
    planting = plan_defect("late-commit", 20_000, 1, edge="file")
    generate(tmp_path / "bad", 20_000, 1, change=planting)
    bad = engine.judge(
        open_history(tmp_path / "bad"), profiles.load("reference"), {"session": session}
    )
    assert bad.exit_code == 1
    assert [judged.id for judged in bad.clauses if judged.verdict == "refuted"] == ["CMT-5"]


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_what_spark_writes_is_a_history(session: Any, tmp_path: Path, form: str) -> None:
    """`df.write.parquet(DIR)` or `.json(DIR)`, and DIR is given to `inorder check`; a run.json in it is used."""
    info, rows = recorded()
    table = rows_to_table(rows)
    used = [name for name in table.column_names if table.column(name).null_count < len(rows)]
    texts = {column.name for column in COLUMNS if column.type == "string"}
    plain = {
        name: table.column(name).cast(pa.string()) if name in texts else table.column(name)
        for name in used
    }
    frame = session.createDataFrame(pa.table(plain)).repartition(3)
    getattr(frame.write, form)(str(tmp_path / "theirs"))
    write_runinfo(tmp_path / "theirs", info)
    theirs = open_history(tmp_path / "theirs")
    assert list(theirs.rows()) == list(rows)
    assert engine.examine(theirs, OnSpark(session)) == examine(rows, info)


def test_an_error_in_a_task_comes_back_as_one_sentence(session: Any, tmp_path: Path) -> None:
    info, rows = recorded()
    strange = [rows[0]._replace(kind="teleport"), *rows[1:]]  # type: ignore[arg-type]
    history = write_history(tmp_path / "h", info, strange)
    with pytest.raises(HistoryError, match=r"^a history holds the unknown word 'teleport'$"):
        engine.examine(history, OnSpark(session))


def test_without_java_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "java", lambda: None)
    with pytest.raises(UsageError, match="needs a Java runtime"):
        session_module.open_session()


def test_a_java_that_does_not_run_spark_is_the_suite_s_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess
    import sys

    fake = tmp_path / "bin" / "java"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    code = (
        "from spark_checkers.session import open_session\n"
        "from specs.errors import TargetMisbehaved\n"
        "try:\n    open_session()\nexcept TargetMisbehaved as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout.startswith("Spark did not start: ")
    assert TargetMisbehaved.exit_code == 70


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("defect", [None, "commit-rewinds"])
def test_ten_million_events(session: Any, tmp_path: Path, defect: str | None) -> None:
    events = 10_000_000
    planting = None if defect is None else plan_defect(defect, events, 7, edge="file")
    generate(tmp_path / "h", events, 7, change=planting)
    verdict = engine.judge(
        open_history(tmp_path / "h"), profiles.load("reference"), {"session": session}
    )
    refuted = [judged.id for judged in verdict.clauses if judged.verdict == "refuted"]
    assert refuted == ([] if defect is None else ["CMT-4"])
    assert verdict.exit_code == (0 if defect is None else 1)
