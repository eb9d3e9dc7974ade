"""The suite under pytest: one test per clause, our exit codes, Allure results by allure-pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result

from conformance.cli import seam
from conformance.plugin import Suite
from conformance.reports.view import open_run

MUTANT = "mutant:renewal-does-not-refresh"


def suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`pytest --pyargs conformance.suite ...` in an empty folder."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "--pyargs", "conformance.suite", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_refuted_clause_is_a_failed_test(tmp_path: Path, profile: str) -> None:
    """The test is named by the clause, its failure is the story, the exit code is 1."""
    target = ["--inorder-target", MUTANT, "--inorder-profile", profile, "--inorder-seed", "5"]
    done = suite(tmp_path, *target, "--inorder-out", "run", "--alluredir", "results", "-rA")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "seed 5" in done.stdout
    assert "test_clause[LSE-1 one owner at a time]" in done.stdout
    assert "promised:   No two clients hold the lease of one lane at the same time." in done.stdout
    assert "replay: inorder replay run" in done.stdout
    found = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "results").glob("*-result.json")]
    failed = {result["name"]: result for result in found if result["status"] == "failed"}
    # Whether the lossy link of the shrunk run lost anything is the draw's affair; the run says which checks fail.
    unmet = {f"{each.id} {each.title}" for each in open_run(tmp_path / "run").met if each.ok is False}
    assert set(failed) == {"LSE-1 one owner at a time", *unmet}
    refuted = failed["LSE-1 one owner at a time"]
    assert {label["value"] for label in refuted["labels"] if label["name"] == "suite"} == {"lease"}
    assert {"timeline", "witness", "replay command"} <= {each["name"] for each in refuted["attachments"]}
    assert "seed = 5" in (tmp_path / "results" / "environment.properties").read_text(encoding="utf-8")


def test_a_run_that_could_not_tell_is_2(tmp_path: Path, profile: str) -> None:
    """Two small runs do not reach the floor of every clause."""
    done = suite(tmp_path, "--inorder-target", "reference", "--inorder-profile", profile, "--inorder-examples", "1")
    assert done.returncode == 2, done.stdout
    assert "INCONCLUSIVE" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "say what to judge"),
        (["--inorder-target", "refrence"], "did you mean reference"),
    ],
)
def test_wrong_usage_is_64(tmp_path: Path, arguments: list[str], words: str) -> None:
    """One sentence, as the command line says it."""
    done = suite(tmp_path, *arguments)
    assert (done.returncode, words in done.stdout + done.stderr) == (64, True), done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_chosen_clause_decides_alone(refuted_run: tuple[Result, Path]) -> None:
    """With the others deselected the exit code is about what ran."""
    verdict = open_run(refuted_run[1])
    ready = seam.prepare(MUTANT, None)
    run = Suite(ready=ready, seed=5, examples=None, out=refuted_run[1], verdict=verdict)
    assert run.exit_code() == 1
    run.deselected = True
    run.seen = {"MET-1", "ORD-2"}
    assert run.exit_code() == 0
    run.seen.add("LSE-1")
    assert run.exit_code() == 1
