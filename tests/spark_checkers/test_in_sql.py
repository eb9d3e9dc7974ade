"""The SQL of the benchmark says what the clauses say: it counts what is planted, and nothing in a valid history."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.parts.wheels import Wheel
from spark_checkers.generate import generate, plan_defect
from spark_checkers.in_sql import CLAUSES, InDuckDB
from spark_checkers.trace_mutants import DEFECTS
from specs.history.store import open_history

pytestmark = pytest.mark.long
EVENTS = 30_000
DUCKDB = Wheel("duckdb", "2.0.0")


def counted(folder: Path, clause: str) -> int:
    history = open_history(folder)
    base = InDuckDB(history.parquet, history.info.config.broker_lease_ms * 1000, 1)
    return base.violations(clause)


@pytest.mark.parametrize("clause", CLAUSES)
def test_it_counts_what_is_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clause: str
) -> None:
    monkeypatch.syspath_prepend(str(DUCKDB.ensure()))
    defect = next(
        name for name, each in DEFECTS.items() if each.clause == clause and each.generated
    )
    generate(tmp_path / "valid", EVENTS, 7)
    generate(tmp_path / "broken", EVENTS, 7, change=plan_defect(defect, EVENTS, 7))
    assert counted(tmp_path / "valid", clause) == 0
    assert counted(tmp_path / "broken", clause) > 0
