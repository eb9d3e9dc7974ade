"""The matrix of scenarios and bugs: what each cell is, and when the whole is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaos.scenario import load
from inorder.evidence.grid import Cell, Done
from inorder.evidence.scenario_matrix import __main__ as command
from inorder.evidence.scenario_matrix import pages, simulated
from inorder.evidence.scenario_matrix.lines import Line
from inorder.evidence.scenario_matrix.simulated import BESIDE, CORRECT, SYNC, cell_of

SCENARIO = "consumer-paused"
BUG = "dropped-lane-goes-on"
CLAUSE = "ORD-13"


def done(
    bug: str,
    refuted: list[str],
    *,
    beside: bool = False,
    sync: bool = False,
    word: str = "upheld",
    stakes: int = 0,
) -> Done:
    cell = cell_of(SCENARIO, bug, 1, beside=beside, sync=sync)
    told = dict.fromkeys(load(SCENARIO).clauses, stakes)
    value = {"refuted": refuted, "word": word, "missed": [], "sends": 240, "stakes": told}
    return Done(cell, value)


def test_a_scenario_shows_its_bug_and_is_silent_otherwise(tmp_path: Path) -> None:
    words = ["--scenario", SCENARIO, "--seeds", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(command.main, words)
    assert result.exit_code == 0, result.output
    (line,) = json.loads((tmp_path / "matrix.json").read_text())
    once, twice = ({"as it must be": times, "of": times} for times in (1, 2))
    assert (line["bug"], line["clause"]) == (BUG, CLAUSE)
    assert [line[way] for way in ("shown", CORRECT, SYNC, BESIDE)] == [once, twice, twice, once]
    assert "consumer-paused" in (tmp_path / "matrix.md").read_text()
    assert re.search(r"consumer-paused \| 4 \| \d+ \| LSE-4 ", (tmp_path / "stakes.md").read_text())
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
    assert Line.of(SCENARIO, BUG, kept).is_wrong is is_wrong


def test_a_false_alarm_of_the_cluster_that_answers_after_the_sync_is_wrong_too() -> None:
    kept = [done(BUG, [CLAUSE]), done(CORRECT, []), done(CORRECT, [], sync=True, word="refuted")]
    assert Line.of(SCENARIO, BUG, kept).is_wrong


def test_stakes_are_those_of_the_run_with_fewest_and_of_all() -> None:
    kept = [done(CORRECT, [], stakes=3), done(CORRECT, [], sync=True, stakes=9), done(BUG, [])]
    ((name, runs, messages, told),) = pages.stakes_of(kept)
    assert (name, runs, messages) == (SCENARIO, "2", "240")
    assert told == "; ".join(f"{clause} 3, 12" for clause in load(SCENARIO).clauses)


def test_with_all_each_scenario_meets_every_named_bug_once() -> None:
    cells = list(simulated.cells_of([SCENARIO], (1, 2), every=True))
    bugs = {cell.key["bug"] for cell in cells if cell.key["seed"] == 1}
    assert len(bugs) > 10
    assert [cell.name for cell in cells if cell.key["seed"] == 2] == [
        cell_of(SCENARIO, BUG, 2).name,
        cell_of(SCENARIO, BUG, 2, beside=True).name,
        cell_of(SCENARIO, CORRECT, 2).name,
        cell_of(SCENARIO, CORRECT, 2, sync=True).name,
    ]
    assert max(cell.key["seed"] for cell in cells) == 4


def test_a_scenario_that_says_when_the_broker_syncs_has_no_other_variety() -> None:
    cells = list(simulated.cells_of(["power-cut"], (1,), every=False))
    assert not any(cell.key[SYNC] for cell in cells)
    assert all(isinstance(cell, Cell) for cell in cells)
