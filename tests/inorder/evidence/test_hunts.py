"""Hunts of bugs that they are not told: what is found, by which way, and when a table of it is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from inorder.evidence import hunts
from inorder.evidence.grid import Cell

EASY = "guard-ignores-expiry"


def test_every_bug_of_a_scenario_is_hunted() -> None:
    """At least 25, each once."""
    assert len(hunts.bugs()) == len(set(hunts.bugs())) >= 25


def test_a_search_finds_a_bug_that_it_is_not_told() -> None:
    """And the same search finds it in the same example."""
    cell = hunts.cell_of(EASY, "blind", 1, 5)
    found = hunts.search_for(cell)
    assert "LSE-3" in found["clauses"]
    assert hunts.search_for(cell) == found


@pytest.mark.parametrize(("missed", "code"), [([], 0), (["beta"], 0), (["alpha", "beta"], 1)])
def test_four_in_five_have_to_be_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missed: list[str], code: int
) -> None:
    """By searches that learn; what blind ones find stands beside it."""

    def search_for(cell: Cell) -> dict[str, Any]:
        learns = cell.key["way"] == hunts.LEARNING
        missing = learns and cell.key["bug"] in missed
        return {
            "example": None if missing else 7,
            "clauses": [] if missing else ["ORD-2"],
            "states": 3,
        }

    known = ["alpha", "beta", "gamma", "delta", "epsilon"]
    monkeypatch.setattr(hunts, "bugs", lambda: known)
    monkeypatch.setattr(hunts, "search_for", search_for)
    done = CliRunner().invoke(hunts.main, ["--out", str(tmp_path / "hunts"), "--seeds", "2"])
    assert done.exit_code == code, done.output
    told = json.loads((tmp_path / "hunts" / "hunts.json").read_text())
    assert [line["bug"] for line in told if line["found"][hunts.LEARNING] == [0, 2]] == missed
    assert {tuple(line["found"]["blind"]) for line in told} == {(2, 2)}
    assert f"{len(known) - len(missed)} of 5 bugs were found" in done.output
