"""`inorder mutants`: the matrix on stdout, progress on stderr, files beside it, and the exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import psutil
import pytest
from click.testing import Result

from conformance.reports.schemas import MATRIX_SCHEMA, schema

Run = Callable[..., Result]
Start = Callable[..., "subprocess.CompletedProcess[str]"]
FEW = ("newest-first", "own-lock-refused-when-asked-again")
"""Found within a moment, and shrunk as fast."""


@pytest.fixture(scope="module")
def matrix(run: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """The matrix of two mutants as JSON, and its folder."""
    out = tmp_path_factory.mktemp("matrix") / "out"
    return run(
        "mutants", *FEW, "--seed", "2", "--workers", "1", "--out", str(out), "--format", "json"
    ), out


def test_the_matrix_as_json_is_the_kept_one(matrix: tuple[Result, Path]) -> None:
    """One object on stdout, of the schema that it names."""
    result, out = matrix
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    jsonschema.validate(printed, schema(MATRIX_SCHEMA))
    assert printed == json.loads((out / "matrix.json").read_text(encoding="utf-8"))
    assert [(each["name"], each["killed"], each["minimal"]) for each in printed["mutants"]] == [
        ("newest-first", True, True),
        ("own-lock-refused-when-asked-again", True, True),
    ]
    assert printed["summary"]["killed"] == 2


def test_progress_has_a_line_for_each_mutant(matrix: tuple[Result, Path]) -> None:
    """And first the seed, last the command for the same again."""
    lines = matrix[0].stderr.splitlines()
    assert lines[0] == "searching for 2 mutants, seed 2, at most 300 examples each"
    assert sum("killed by" in line for line in lines) == 2
    assert (
        lines[-1]
        == "again: inorder mutants newest-first own-lock-refused-when-asked-again --seed 2 --examples 300"
    )


def test_the_document_and_the_allure_results_tell_each_kill(matrix: tuple[Result, Path]) -> None:
    """A table, then a story for each; in Allure one result for each and one for all, with the matrix attached."""
    _, out = matrix
    document = (out / "matrix.md").read_text(encoding="utf-8")
    assert "2 of 2 mutants killed by the clause that they name" in document
    assert "## own-lock-refused-when-asked-again" in document
    results = [
        json.loads(path.read_text()) for path in (out / "allure-results").glob("*-result.json")
    ]
    assert {(each["fullName"], each["status"]) for each in results} == {
        ("inorder.mutants.kill matrix", "passed"),
        ("inorder.mutants.newest-first", "passed"),
        ("inorder.mutants.own-lock-refused-when-asked-again", "passed"),
    }
    whole = next(each for each in results if each["fullName"].endswith("kill matrix"))
    assert [each["name"] for each in whole["attachments"]] == ["kill matrix", "kill matrix (data)"]


def test_the_run_of_a_kill_can_be_explained_and_replayed(
    run: Run, matrix: tuple[Result, Path]
) -> None:
    """It is a run like any other."""
    folder = str(matrix[1] / "runs" / "newest-first")
    explained = run("explain", folder).stdout
    told = [
        line.split()[1]
        for line in explained.splitlines()
        if line.startswith("REFUTED  ") and "under" not in line
    ]
    assert "ORD-2" in told  # what the run was shrunk to
    replayed = run("replay", folder)
    assert (replayed.exit_code, "the same bytes" in replayed.stderr) == (1, True)


@pytest.mark.long
def test_a_matrix_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    """What was found is not searched for again; a run that was taken away is, and so is all with --fresh."""
    words = ("mutants", *FEW, "--seed", "2", "--workers", "1", "--out", str(tmp_path / "out"))
    cut = run(*words, "--budget", "0s")
    assert (cut.exit_code, "2 of 2 cells are not made yet" in cut.stderr) == (2, True), cut.stderr
    made = run(*words, "--format", "json")
    again = run(*words, "--format", "json")
    assert "2 cells are " in again.stderr
    assert "killed by" not in again.stderr
    assert [each.exit_code for each in (made, again)] == [0, 0]
    assert json.loads(again.stdout)["mutants"] == json.loads(made.stdout)["mutants"]
    (tmp_path / "out" / "runs" / "newest-first" / "verdict.json").unlink()
    mended = run(*words, "--format", "json")
    assert [
        line.split(":")[0].strip() for line in mended.stderr.splitlines() if "killed by" in line
    ] == ["newest-first"]
    fresh = run(*words, "--fresh")
    assert sum("killed by" in line for line in fresh.stderr.splitlines()) == 2


@pytest.mark.long
def test_a_matrix_that_was_killed_goes_on(tmp_path: Path) -> None:
    """By SIGKILL, with two workers: the mutants that were told of are not searched for again."""
    arguments = [*FEW, "commit-one-too-far", "expiry-ignored", "--seed", "2"]
    command = [sys.executable, "-P", "-m", "inorder", "mutants", *arguments, "--out", str(tmp_path)]
    env = {**os.environ, "PYTHONUTF8": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stderr is not None
        told = next(line for line in process.stderr if "killed by" in line)
        process.kill()
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    first = told.split(":")[0].strip()
    searched = [
        line.split(":")[0].strip() for line in done.stderr.splitlines() if "killed by" in line
    ]
    assert first not in searched
    assert re.search(r"\d cells? (is|are) .* old and kept", done.stderr)
    assert "4 of 4 mutants killed" in (tmp_path / "matrix.md").read_text(encoding="utf-8")


def test_a_survivor_makes_the_exit_code_1(run: Run, tmp_path: Path) -> None:
    """The table names it."""
    result = run(
        "mutants", "throw-taken-for-success", "--examples", "1", "--out", str(tmp_path / "out")
    )
    assert result.exit_code == 1, result.stderr
    assert "survivors: throw-taken-for-success" in " ".join(result.stdout.split())


def test_an_unknown_mutant_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    """One sentence, exit 64, nothing made."""
    result = run("mutants", "nobody", "--out", str(tmp_path / "out"))
    assert (result.exit_code, (tmp_path / "out").exists()) == (64, False)


@pytest.mark.long
def test_ctrl_c_ends_the_workers_too(tmp_path: Path) -> None:
    """Interrupted in the middle: exit 130, one sentence, no process left."""
    # One that is found at once, and two that keep both workers busy.
    few = ("newest-first", "commit-result-ignored", "reset-only-in-memory")
    out = ("--workers", "2", "--out", str(tmp_path / "out"))
    command = [sys.executable, "-P", "-m", "inorder", "mutants", *few, *out]
    env = {**os.environ, "PYTHONUTF8": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "killed by" in line:
                break
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=60)
    assert (process.returncode, "stopped by Ctrl-C" in words, "Traceback" in words) == (
        130,
        True,
        False,
    ), words
    assert len(workers) >= 2
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []


@pytest.mark.long
def test_the_same_seed_gives_the_same_matrix_in_another_process(
    start: Start, tmp_path: Path
) -> None:
    """Whatever the order of sets and dictionaries there; only the seconds differ."""
    found = []
    for number in ("1", "2"):
        arguments = [
            "commit-one-too-far",
            "--seed",
            "9",
            "--out",
            str(tmp_path / number),
            "--format",
            "json",
        ]
        done = start("mutants", *arguments, PYTHONHASHSEED=number)
        assert done.returncode == 0, done.stderr
        mutant = json.loads(done.stdout)["mutants"][0]
        found.append({name: value for name, value in mutant.items() if not name.endswith("_s")})
    assert found[0] == found[1]
