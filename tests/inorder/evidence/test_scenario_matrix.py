"""The matrix of scenarios and bugs: what each cell is, and when the whole is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from inorder.evidence import scenario_matrix
from inorder.evidence.grid import Cell, Done
from inorder.evidence.scenario_matrix import BESIDE, CORRECT, Line, cell_of

SCENARIO = "consumer-paused"
BUG = "dropped-lane-goes-on"
CLAUSE = "ORD-13"


def done(bug: str, refuted: list[str], *, beside: bool = False, word: str = "upheld") -> Done:
    cell = cell_of(SCENARIO, bug, 1, beside=beside)
    return Done(cell, {"refuted": refuted, "word": word, "missed": []})


def test_a_scenario_shows_its_bug_and_is_silent_otherwise(tmp_path: Path) -> None:
    words = ["--scenario", SCENARIO, "--seeds", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(scenario_matrix.main, words)
    assert result.exit_code == 0, result.output
    (line,) = json.loads((tmp_path / "matrix.json").read_text())
    right = {"as it must be": 1, "of": 1}
    assert (line["bug"], line["clause"]) == (BUG, CLAUSE)
    assert [line[way] for way in ("shown", CORRECT, BESIDE)] == [right] * 3
    assert "consumer-paused" in (tmp_path / "matrix.md").read_text()
    assert (tmp_path / "matrix.svg").is_file()


@pytest.mark.parametrize(
    ("bug", "correct", "beside", "is_wrong"),
    [
        ([CLAUSE], "upheld", [], False),
        (["LSE-3"], "upheld", [], True),  # refuted, but not by the clause that the bug names
        ([CLAUSE], "inconclusive", [], True),
        ([CLAUSE], "upheld", [CLAUSE], True),
        ([CLAUSE], "upheld", ["LSE-3"], False),
    ],
)
def test_a_matrix_is_wrong_where_a_cell_is_not_as_it_must_be(
    bug: list[str], correct: str, beside: list[str], *, is_wrong: bool
) -> None:
    kept = [
        done(BUG, bug),
        done(CORRECT, [], word=correct),
        done(BUG, beside, beside=True),
    ]
    assert Line.of(SCENARIO, kept).is_wrong is is_wrong


def test_with_all_each_scenario_meets_every_named_bug_once() -> None:
    cells = list(scenario_matrix.cells_of([SCENARIO], (1, 2), every=True))
    bugs = {cell.key["bug"] for cell in cells if cell.key["seed"] == 1}
    assert len(bugs) > 10
    assert [cell.name for cell in cells if cell.key["seed"] == 2] == [
        cell_of(SCENARIO, CORRECT, 2).name,
        cell_of(SCENARIO, BUG, 2).name,
        cell_of(SCENARIO, BUG, 2, beside=True).name,
    ]
    assert all(isinstance(cell, Cell) for cell in cells)
