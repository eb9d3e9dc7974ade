"""Hunts of bugs that they are not told: what is found, by which way, and when a table of it is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.replay import REFERENCE
from inorder.evidence import hunts
from inorder.evidence.grid import Cell

EASY = "guard-ignores-expiry"
KNOWN = ["alpha", "beta", "gamma", "delta", "epsilon"]


def test_every_bug_of_a_scenario_is_hunted() -> None:
    """At least 36, each once."""
    assert len(hunts.bugs()) == len(set(hunts.bugs())) >= 36


def test_a_search_finds_a_bug_that_it_is_not_told() -> None:
    """And the same search finds it in the same example, which breaks nothing on the correct cluster."""
    cell = hunts.cell_of(EASY, "blind", 1, 1.0)
    found, again = hunts.search_for(cell), hunts.search_for(cell)
    assert "LSE-3" in found["clauses"]
    assert found["correct"] == []
    assert {**found, "seconds": 0} == {**again, "seconds": 0}


def test_what_a_bug_needs_of_the_configuration_is_not_told() -> None:
    twin = hunts.quarry_of("acknowledged-before-the-sync").twin
    assert twin is not None
    assert twin.mutant is not None
    assert (twin.mutant.name, dict(twin.mutant.config)) == ("acknowledged-before-the-sync", {})


def test_a_search_ends_with_the_time_that_its_process_has_used() -> None:
    """Of a bug that a millisecond does not show: one example, and nothing is found."""
    cell = hunts.cell_of("lock-error-is-a-grant", hunts.LEARNING, 1, 0.001 / 60)
    made = hunts.search_for(cell)
    assert (made["example"], made["examples"], made["clauses"]) == (None, 1, [])


def outcome(clauses: list[str], correct: list[str]) -> dict[str, Any]:
    example = 7 if clauses else None
    cost = {"seed": 1, "examples": 9, "seconds": 2.0, "states": 3}
    return {**cost, "example": example, "clauses": clauses, "correct": correct}


def made(
    monkeypatch: pytest.MonkeyPatch, out: Path, missed: list[str], alarm: str = ""
) -> tuple[int, str, list[dict[str, Any]]]:
    """The exit code, what is said and hunts.json, where searches that learn miss these bugs.

    alarm: of which bug, or of the correct cluster, the example breaks something on the correct cluster.
    """

    def search_for(cell: Cell) -> dict[str, Any]:
        bug = cell.key["bug"]
        learns = cell.key["way"] == hunts.LEARNING
        correct = ["ORD-2"] if bug == alarm else []
        is_missed = (learns and bug in missed) or (bug == REFERENCE and not correct)
        return outcome([] if is_missed else ["ORD-2"], correct)

    monkeypatch.setattr(hunts, "bugs", lambda: KNOWN)
    monkeypatch.setattr(hunts, "search_for", search_for)
    monkeypatch.setattr(hunts, "own_clauses", lambda bug: {"ORD-2"})
    done = CliRunner().invoke(hunts.main, ["--out", str(out), "--seeds", "2", "--seed", "5"])
    return done.exit_code, done.output, json.loads((out / "hunts.json").read_text())


@pytest.mark.parametrize(("missed", "code"), [([], 0), (["beta"], 0), (["alpha", "beta"], 1)])
def test_four_in_five_have_to_be_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missed: list[str], code: int
) -> None:
    """By searches that learn; what blind ones find stands beside it, with its share."""
    exit_code, output, told = made(monkeypatch, tmp_path / "hunts", missed)
    assert exit_code == code, output
    of_bugs = [line for line in told if line["bug"] != REFERENCE]
    assert [line["bug"] for line in of_bugs if line["found"][hunts.LEARNING] == [0, 2]] == missed
    assert {tuple(line["found"]["blind"]) for line in of_bugs} == {(2, 2)}
    share = f"{len(KNOWN) - len(missed)} of 5 bugs were found by searches of the way learning, "
    assert share in output
    assert "5 of 5 bugs were found by searches of the way blind, 100%" in output
    assert "seed 5" in output


@pytest.mark.parametrize("alarm", ["beta", REFERENCE])
def test_what_the_correct_cluster_breaks_too_is_no_find_and_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, alarm: str
) -> None:
    exit_code, output, told = made(monkeypatch, tmp_path / "hunts", [], alarm)
    assert exit_code == 1
    assert "BROKEN TOO on the correct cluster" in output
    assert [line["bug"] for line in told if line["correct"]] == [alarm]
    (line,) = (line for line in told if line["bug"] == alarm)
    assert line["found"][hunts.LEARNING] == [0, 2]


def test_a_seed_is_drawn_and_printed_where_nobody_says_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: set[int] = set()

    def search_for(cell: Cell) -> dict[str, Any]:
        seen.add(cell.key["seed"])
        return outcome([], [])

    monkeypatch.setattr(hunts, "bugs", lambda: KNOWN)
    monkeypatch.setattr(hunts, "search_for", search_for)
    monkeypatch.setattr(hunts, "own_clauses", lambda bug: set())
    done = CliRunner().invoke(hunts.main, ["--out", str(tmp_path / "hunts")])
    assert f"seed {seen.pop()}; " in done.output
    assert not seen
