"""The rows on real sockets: who can be tried, what a run says, and what the page tells of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from inorder.evidence.grid import Cell, Done
from inorder.evidence.scenario_matrix import __main__ as command
from inorder.evidence.scenario_matrix import pages, sockets
from inorder.evidence.scenario_matrix.lines import SOCKETS, Line
from inorder.evidence.scenario_matrix.simulated import cell_of

SCENARIO, BUG, CLAUSE = "consumer-back-at-once", "starts-at-end", "ORD-4"
MARKS = "\n".join(
    f"<!-- table {name} -->\n<!-- end of table {name} -->"
    for name in ("matrix", "left out", "stakes")
)


def done(refuted: list[str], seed: int = 1) -> Done:
    return Done(sockets.cell_of(SCENARIO, BUG, seed), {"refuted": refuted, "word": "refuted"})


def test_a_scenario_is_tried_where_its_faults_can_be_done() -> None:
    assert sockets.target_of(SCENARIO, BUG) == (f"mutant+tcp:{BUG}", "")
    target, why = sockets.target_of("silent-death", "takeover-keeps-old-timestamp")
    assert (target, why) == ("", "is for the backend simulated")
    with pytest.raises(ValueError, match="simulated"):
        sockets.cell_of("silent-death", "takeover-keeps-old-timestamp", 1)
    names = [cell.name for cell in sockets.cells_of([SCENARIO, "silent-death"], (1, 2))]
    assert names == [f"{SCENARIO} on mutant+tcp:{BUG}, seed {seed}" for seed in (1, 2)]


@pytest.mark.parametrize(("refuted", "is_wrong"), [([CLAUSE, "CMT-1"], False), (["CMT-1"], True)])
def test_a_bug_that_its_clause_does_not_refute_on_sockets_is_wrong(
    refuted: list[str], *, is_wrong: bool
) -> None:
    line = Line.of(SCENARIO, BUG, [done(refuted), done([CLAUSE], 2)])
    assert line.counts[SOCKETS] == (1 if is_wrong else 2, 2)
    assert line.is_wrong is is_wrong


def test_the_page_keeps_what_was_not_tried_now(tmp_path: Path) -> None:
    (tmp_path / pages.PAGE).write_text(f"above\n{MARKS}\nbelow\n", encoding="utf-8")
    simulated = Done(cell_of(SCENARIO, BUG, 1), {"refuted": [CLAUSE]})
    pages.refresh(tmp_path, [Line.of(SCENARIO, BUG, [simulated])], [simulated])
    pages.refresh(tmp_path, [Line.of(SCENARIO, BUG, [done([CLAUSE])])], [done([CLAUSE])])
    page = (tmp_path / pages.PAGE).read_text(encoding="utf-8")
    assert f"| {SCENARIO} | {BUG} | {CLAUSE} | 1 of 1 |  |  |  | 1 of 1 |" in page
    assert (page[:6], page[-6:]) == ("above\n", "below\n")


def test_the_page_says_what_sockets_cannot_have(tmp_path: Path) -> None:
    (tmp_path / pages.PAGE).write_text(MARKS, encoding="utf-8")
    words = ["--sockets", "--scenario", "silent-death", "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(command.main, [*words, "--docs", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / pages.PAGE).read_text(encoding="utf-8")
    assert "| silent-death | takeover-keeps-old-timestamp | LSE-1 |  |  |  |  | – |" in page
    assert "| is for the backend simulated | silent-death |" in page


def test_runs_on_sockets_go_on_where_they_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[int] = []

    def make(_root: Path, cell: Cell) -> dict[str, Any]:
        made.append(cell.key["seed"])
        return {"refuted": [CLAUSE], "word": "refuted", "missed": []}

    monkeypatch.setattr(sockets, "make", make)
    words = ["--sockets", "--scenario", SCENARIO, "--out", str(tmp_path), "--seeds"]
    assert CliRunner().invoke(command.main, [*words, "1"]).exit_code == 0
    assert CliRunner().invoke(command.main, [*words, "3"]).exit_code == 0
    assert made == [1, 2, 3]
    (line,) = json.loads((tmp_path / "matrix.json").read_text())
    assert line[SOCKETS] == {"as it must be": 3, "of": 3}


def test_a_run_that_reached_nothing_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    late = {"refuted": [], "word": "inconclusive", "missed": ["each fault had an effect: crash c1"]}
    silent = {"refuted": [], "word": "upheld", "missed": []}
    outcomes = [late, silent, late]
    monkeypatch.setattr(sockets, "make", lambda _root, _cell: outcomes.pop(0))
    words = ["--sockets", "--scenario", SCENARIO, "--out", str(tmp_path), "--seeds", "1"]
    assert [CliRunner().invoke(command.main, words).exit_code for _ in range(3)] == [1, 1, 1]
    assert outcomes == [late]  # the second run told something, so that it is not tried again


@pytest.mark.long
def test_a_bug_shows_on_real_sockets(tmp_path: Path) -> None:
    cell = sockets.cell_of(SCENARIO, BUG, 1)
    value = sockets.make(tmp_path, cell)
    assert CLAUSE in value["refuted"]
    assert [path.name for path in sockets.folder_of(tmp_path, cell).iterdir()] == ["verdict.json"]
