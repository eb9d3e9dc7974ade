"""The figures of the benchmarks: as a table, as JSON, and beside their aims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.reports import svg
from inorder.evidence import benchmarks
from inorder.evidence.benchmarks import Figure, picture

SPEED = Figure("rows per second", 50.0, "50", "9 rows", 100.0, "100")
COST = Figure("cost of a row", 2.0, "2.00", "9 rows", 1.0, "1.00", more_is_better=False)
ALONE = Figure("without an aim", 3.0, "3.0", "9 rows")


def test_a_figure_is_drawn_beside_its_aim() -> None:
    """Of a cost less is better; what has no aim has no bar."""
    assert (SPEED.share, COST.share) == (0.5, 0.5)
    told = svg.render(picture([SPEED, COST, ALONE]))
    assert "rows per second: 50 (aim 100), short of its aim" in told
    assert "cost of a row: 2.00 (aim 1.00), short of its aim" in told
    assert "without an aim" not in told


def test_the_figures_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "figures_of", lambda *how: [SPEED, COST])
    result = CliRunner().invoke(benchmarks.main, ["--no-profile", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    kept = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert [Figure(**each) for each in kept] == [SPEED, COST]
    assert "<svg" in (tmp_path / "bench.svg").read_text(encoding="utf-8")
