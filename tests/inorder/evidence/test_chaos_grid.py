"""The table of scenarios by targets: what was run is kept, what a target can't have is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from inorder.evidence import chaos_grid
from inorder.evidence.grid import Cell, Done
from specs.errors import TargetMisbehaved

WORDS = ["reference+tcp", "--scenario", "consumer-killed", "--scenario", "consumer-paused"]


def played(asked: list[str], outcome: dict[str, Any]) -> Any:
    def play(cell: Cell, _ready: object, root: Path) -> dict[str, Any]:
        asked.append(cell.key["scenario"])
        chaos_grid.folder_of(root, cell).mkdir(parents=True)
        return outcome

    return play


def test_a_grid_goes_on_and_shows_what_it_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    stood = [{"what": "crash", "lane": "billing/orders/b0/0", "ms": 1104.0}]
    fine = {"word": "upheld", "refuted": [], "missed": [], "recovery": stood}
    monkeypatch.setattr(chaos_grid, "play", played(asked, fine))
    words = [*WORDS, "--out", str(tmp_path)]
    assert CliRunner().invoke(chaos_grid.main, [*words, "--budget", "0s"]).exit_code == 2
    first = CliRunner().invoke(chaos_grid.main, words)
    again = CliRunner().invoke(chaos_grid.main, words)
    assert (first.exit_code, again.exit_code, asked) == (0, 0, sorted(asked)), first.output
    assert len(asked) == 2
    assert first.stdout == again.stdout
    assert "2 cells are" in again.stderr
    assert "| consumer-killed | upheld |" in (tmp_path / chaos_grid.PAGE).read_text()
    assert [each["word"] for each in json.loads((tmp_path / chaos_grid.DATA).read_text())] == [
        "upheld",
        "upheld",
    ]
    assert "consumer-killed: upheld: reference+tcp" in (tmp_path / "chaos.svg").read_text()
    told = "consumer-paused on reference+tcp: crash: 1,104 to 1,104, median 1,104, of 1"
    assert told in (tmp_path / "recovery.svg").read_text()


def test_a_refuted_clause_is_shown_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = {"word": "refuted", "refuted": ["LSE-2"], "missed": [], "recovery": []}
    monkeypatch.setattr(chaos_grid, "play", played([], broken))
    result = CliRunner().invoke(chaos_grid.main, [*WORDS, "--out", str(tmp_path)])
    assert (result.exit_code, "refuted (LSE-2)" in result.stdout) == (1, True)
    assert "consumer-killed: refuted: LSE-2: reference+tcp" in (tmp_path / "chaos.svg").read_text()


def test_what_a_target_was_not_given_and_what_failed_have_their_words() -> None:
    cells = [chaos_grid.cell_of("a", "x", "p", 1), chaos_grid.cell_of("b", "y", "p", 1)]
    short = {"word": "inconclusive", "refuted": [], "missed": ["not met: it"]}
    made = [Done(cells[0], short), Done(cells[1], error=TargetMisbehaved("it died"))]
    head, rows = chaos_grid.table(made, ("a", "b"))
    assert head == ("scenario", "a", "b")
    assert rows == [("x", "inconclusive (not met: it)", "–"), ("y", "–", "failed: it died")]
