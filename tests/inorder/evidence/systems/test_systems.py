"""Promises by systems: each promise has its row, a cell says the worst, and the page keeps what was not run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.targets.base import find
from inorder.evidence.grid import Cell
from inorder.evidence.systems import __main__ as command
from inorder.evidence.systems import table
from inorder.evidence.systems.table import MARKS, Column
from specs import profiles
from specs.clauses.catalogue import catalogue
from specs.errors import EXIT_USAGE
from tests.docs.reading import ROOT

UPHELD = ("upheld", 12)
EMPTY = f"# A page\n\n{MARKS[0]}\nSTALE\n{MARKS[1]}\n\nafter\n"


def column(name: str, **clauses: tuple[str, int]) -> Column:
    told = {id.replace("_", "-"): each for id, each in clauses.items()}
    target = table.systems().get(name, "t")
    return Column(name, target, "p", "upheld", 1, "2026-11-23", 60, told)


@pytest.mark.parametrize("name", table.systems())
def test_what_a_system_claims_has_a_row(name: str) -> None:
    """Each clause once; and every system of the table is a target that has a profile."""
    rows = [id for promise in table.promises() for id in promise.clauses]
    assert len(rows) == len(set(rows))
    assert set(rows) <= {clause.id for clause in catalogue()}
    profile = profiles.load(find(table.systems()[name]).profile)
    promised = {id for id, claim in profile.claims.items() if claim.status == "claimed"}
    known = {clause.id for clause in catalogue()}
    assert (promised & known) - set(rows) == set()


@pytest.mark.parametrize(
    ("clauses", "shown"),
    [
        ({"SND_1": UPHELD, "SND_2": UPHELD, "SND_10": ("not_claimed", 0)}, "✓"),
        ({"SND_1": UPHELD, "SND_2": ("refuted", 9), "SND_10": ("allowed", 3)}, "✗ SND-2"),
        ({"SND_1": UPHELD, "SND_2": ("possible", 9)}, "? SND-2"),
        ({"SND_1": UPHELD, "SND_10": ("allowed", 3)}, "≈ SND-10"),
        ({"SND_1": ("not_exercised", 1)}, "○"),
        ({}, "·"),
    ],
)
def test_a_cell_says_the_worst(clauses: dict[str, Any], shown: str) -> None:
    """And names the clauses of what is not kept."""
    promise = next(each for each in table.promises() if "SND-2" in each.clauses)
    assert table.cell(promise, column("x", **clauses)).text == shown


def test_the_page_shows_its_data() -> None:
    """Nobody wrote into its table by hand; and the picture is of the same runs."""
    page = ROOT / "docs" / "promises.md"
    columns = command.columns_of(command.read(ROOT / "docs" / command.DATA))
    text = page.read_text(encoding="utf-8")
    assert table.written(text, columns) == text
    assert [each.name for each in columns] == list(table.systems())


def test_runs_of_a_system_are_one_column() -> None:
    """What one run broke is broken; what one run put at stake was at stake."""
    first = column("x", SND_1=UPHELD, SND_2=("not_exercised", 0), SND_10=UPHELD)
    second = column("x", SND_1=("not_exercised", 1), SND_2=UPHELD, SND_10=("refuted", 3))
    told = table.joined([first, replace(second, verdict="refuted", seconds=70)])
    assert told.clauses == {"SND-1": ("upheld", 13), "SND-2": UPHELD, "SND-10": ("refuted", 15)}
    assert (told.verdict, told.seconds) == ("upheld 1 of 2, refuted 1 of 2", 70)


def test_what_was_not_run_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A system is judged again alone; the same again judges nothing."""
    first, second = list(table.systems())[:2]
    asked: list[tuple[str, int]] = []

    def judge(cell: Cell, folder: Path) -> dict[str, Any]:
        name, seed = cell.key["system"], cell.key["seed"]
        asked.append((name, seed))
        folder.mkdir(parents=True)
        return replace(column(name, ORD_2=("refuted", 5)), seed=seed).to_json()

    monkeypatch.setattr(command, "judge", judge)
    page = tmp_path / "promises.md"
    page.write_text(EMPTY, encoding="utf-8")
    words = ["--page", str(page), "--out", str(tmp_path / "runs")]
    for name in (second, first, first):
        result = CliRunner().invoke(command.main, [name, "--seeds", "2", *words])
        assert result.exit_code == 0, result.output
    assert asked == [(second, 1), (second, 2), (first, 1), (first, 2)]
    text = page.read_text(encoding="utf-8")
    assert "| A queue's messages come in their order | ✗ ORD-2 | ✗ ORD-2 |" in text
    assert (text.startswith("# A page"), text.endswith("after\n"), "STALE" in text) == (
        True,
        True,
        False,
    )
    assert [each["name"] for each in json.loads((tmp_path / command.DATA).read_text())] == [
        name for name in (first, second) for _ in range(2)
    ]
    assert first in (tmp_path / command.PICTURE).read_text(encoding="utf-8")


def test_an_unknown_system_is_one_sentence() -> None:
    """It names those that there are."""
    result = CliRunner().invoke(command.main, ["pigeons"])
    assert result.exit_code == EXIT_USAGE
    assert "no system of the table begins with 'pigeons'; there are: RocketMQ" in result.output
