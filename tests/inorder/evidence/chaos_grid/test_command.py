"""The table of scenarios by targets: what was run is kept, what a target can't have is left out."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chaos.cli import prepare
from conformance.reports.view import VERDICT_FILE
from inorder.evidence.chaos_grid import __main__ as command
from inorder.evidence.chaos_grid import cells, pages
from inorder.evidence.chaos_grid.cells import folder_of
from inorder.evidence.grid import Cell
from specs.errors import TargetMisbehaved

WORDS = ["reference+tcp", "--scenario", "consumer-killed", "--scenario", "consumer-paused"]
FINE = {
    "word": "upheld",
    "refuted": [],
    "missed": [],
    "messages": 240,
    "at_stake": {"SND-1": 240},
    "faults": [{"verb": "crash", "lanes": 2, "recovered_ms": 17}],
    "recovery": [{"what": "crash", "lane": "billing/orders/b0/0", "ms": 1104.0}],
}

ONCE = cache(prepare)
"""What a target can have is looked at once for all tests."""


@pytest.fixture(autouse=True)
def looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "prepare", ONCE)


def played(asked: list[tuple[str, int]], outcome: dict[str, Any]) -> Any:
    def play(cell: Cell, _ready: object, root: Path) -> dict[str, Any]:
        asked.append((cell.key["scenario"], cell.key["seed"]))
        folder = folder_of(root, cell)
        folder.mkdir(parents=True)
        (folder / VERDICT_FILE).write_text("{}", encoding="utf-8")
        return outcome

    return play


def test_a_grid_goes_on_and_shows_what_it_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(cells, "play", played(asked, FINE))
    words = [*WORDS, "--out", str(tmp_path)]
    assert CliRunner().invoke(command.main, [*words, "--budget", "0s"]).exit_code == 2
    first = CliRunner().invoke(command.main, words)
    again = CliRunner().invoke(command.main, words)
    assert (first.exit_code, again.exit_code) == (0, 0), first.output
    assert asked == [("consumer-killed", 1), ("consumer-paused", 1)]
    assert first.stdout == again.stdout
    assert "2 cells are" in again.stderr
    assert "| consumer-killed | upheld |" in (tmp_path / command.PAGE).read_text()
    data = json.loads((tmp_path / command.DATA).read_text())
    assert [each["word"] for each in data] == ["upheld", "upheld"]
    assert "consumer-killed: upheld: reference+tcp" in (tmp_path / "chaos.svg").read_text()
    told = "consumer-paused on reference+tcp: crash: 1,104 to 1,104, median 1,104, of 1"
    assert told in (tmp_path / "recovery.svg").read_text()
    assert "| `crash` | 17 / 17 (2) |" in (tmp_path / pages.RECOVERY).read_text()


def test_more_seeds_add_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(cells, "play", played(asked, FINE))
    words = [*WORDS, "--out", str(tmp_path)]
    CliRunner().invoke(command.main, words)
    CliRunner().invoke(command.main, [*words, "--seeds", "2"])
    expected = [(name, seed) for seed in (1, 2) for name in ("consumer-killed", "consumer-paused")]
    assert asked == expected
    assert "| consumer-killed | upheld 2 of 2 |" in (tmp_path / command.PAGE).read_text()


def test_a_run_whose_verdict_is_gone_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(cells, "play", played(asked, FINE))
    words = [*WORDS[:3], "--out", str(tmp_path)]
    CliRunner().invoke(command.main, words)
    for verdict in tmp_path.glob(f"*/*/*/{VERDICT_FILE}"):
        verdict.unlink()
        verdict.parent.rmdir()
    CliRunner().invoke(command.main, words)
    assert asked == [("consumer-killed", 1)] * 2


def test_a_refuted_clause_is_shown_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = {**FINE, "word": "refuted", "refuted": ["LSE-2"]}
    monkeypatch.setattr(cells, "play", played([], broken))
    result = CliRunner().invoke(command.main, [*WORDS, "--out", str(tmp_path)])
    assert (result.exit_code, "refuted (LSE-2)" in result.stdout) == (1, True)
    assert "consumer-killed: refuted: LSE-2: reference+tcp" in (tmp_path / "chaos.svg").read_text()


def test_the_pages_of_the_docs_gather_the_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for page, names in (
        (pages.GRID, ("targets", "scenarios", "not upheld", "thin")),
        (pages.RECOVERY, ("after healing", "standing still")),
    ):
        marks = "\n".join(f"<!-- table {n} -->\n<!-- end of table {n} -->" for n in names)
        (docs / page).write_text(f"above\n{marks}\nbelow\n", encoding="utf-8")
    for seed, outcome in (("1", FINE), ("2", {**FINE, "word": "inconclusive"})):
        monkeypatch.setattr(cells, "play", played([], outcome))
        words = [*WORDS[:3], "--out", str(tmp_path / seed), "--seed", seed, "--docs", str(docs)]
        CliRunner().invoke(command.main, words)
    page = (docs / pages.GRID).read_text(encoding="utf-8")
    assert "| consumer-killed | 1 of 2 |" in page
    assert "| consumer-killed | `reference+tcp` | 2 | inconclusive |" in page
    assert (page[:6], page[-6:]) == ("above\n", "below\n")
    assert "| `crash` | 17 / 17 (2) |" in (docs / pages.RECOVERY).read_text(encoding="utf-8")


def test_a_run_that_failed_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(*_: object) -> None:
        raise TargetMisbehaved("it died")

    monkeypatch.setattr(cells, "play", fails)
    words = [*WORDS[:3], "--out", str(tmp_path)]
    result = CliRunner().invoke(command.main, words)
    assert (result.exit_code, "failed (it died)" in result.stdout) == (70, True)
    monkeypatch.setattr(cells, "play", played([], FINE))
    assert CliRunner().invoke(command.main, words).exit_code == 0


def test_what_no_process_can_have_is_left_out() -> None:
    """A process can't die without its connections being closed; proxies stand before every release."""
    ready, left_out = ONCE((), "rocketmq-local:4.9.7", None, "process")
    assert {"consumer-killed", "link-down"} <= {each.name for each in ready.scenarios}
    assert "simulated" in left_out["silent-death"]
