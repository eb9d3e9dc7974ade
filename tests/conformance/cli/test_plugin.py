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
from conformance.plugin import CHECKS, Suite
from conformance.reports.view import open_run
from specs.clauses.catalogue import all_clauses

MUTANT = "mutant:expiry-ignored"


def suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`pytest --pyargs conformance.suite ...` in an empty folder."""
    return subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "--pyargs",
            "conformance.suite",
            "-p",
            "no:cacheprovider",
            *arguments,
        ],
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
    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (tmp_path / "results").glob("*-result.json")
    ]
    failed = {result["name"]: result for result in found if result["status"] == "failed"}
    # Whether the lossy link of the shrunk run lost anything is the draw's affair; the run says which checks fail.
    unmet = {
        f"{each.id} {each.title}" for each in open_run(tmp_path / "run").met if each.ok is False
    }
    assert set(failed) == {"LSE-1 one owner at a time", *unmet}
    refuted = failed["LSE-1 one owner at a time"]
    assert {label["value"] for label in refuted["labels"] if label["name"] == "suite"} == {"lease"}
    assert {"timeline", "witness", "replay command"} <= {
        each["name"] for each in refuted["attachments"]
    }
    assert "seed = 5" in (tmp_path / "results" / "environment.properties").read_text(
        encoding="utf-8"
    )


@pytest.mark.long
def test_a_failure_of_somebody_elses_stays_red(tmp_path: Path, profile: str) -> None:
    """A user's own failing test beside a suite that upholds everything: pytest's 1, whatever the verdict says."""
    mine = "def test_good(): assert 1 == 1\n\ndef test_bad(): assert 1 == 2\n"
    (tmp_path / "test_mine.py").write_text(mine, encoding="utf-8")
    arguments = [
        "--inorder-target",
        "reference",
        "--inorder-profile",
        profile,
        "--inorder-seed",
        "5",
    ]
    done = suite(
        tmp_path, "test_mine.py", *arguments, "--inorder-examples", "5", "--alluredir", "results"
    )
    assert "1 failed" in done.stdout
    assert "UPHELD  reference" in done.stdout
    assert done.returncode == 1, done.stdout


def outcome(folder: Path, test: str, conftest: str = "") -> int:
    """The exit code of a session with the plugin beside one test of the suite, whose verdict is `inconclusive`: 2."""
    (folder / "test_mine.py").write_text(test, encoding="utf-8")
    (folder / "conftest.py").write_text(STAND_IN + conftest, encoding="utf-8")
    done = suite(folder, "test_mine.py", "--inorder-target", "reference", "--inorder-out", "run")
    assert "not_exercised_at_all" in done.stdout, done.stdout + done.stderr
    return done.returncode


LONG = pytest.mark.long
STAND_IN = """
import pytest

from conformance import plugin
from conformance.reports.view import CheckView, VerdictView
from specs.verdicts.verdict import RunVerdict


class Ready:
    target, on_the_wire = "reference", False

    class profile:
        name = "p"

    def run(self, **_):
        return VerdictView(
            RunVerdict.INCONCLUSIVE, "reference", "p", 1, "run", None, {}, (), (),
            (CheckView("MET-6", "exercised", False, "not_exercised_at_all"),),
        )


def pytest_collection_finish(session):
    session.config.stash[plugin.KEY].ready = Ready()
"""


@pytest.mark.parametrize(
    ("test", "conftest", "code"),
    [
        ("def test_mine(): pass", "", 2),
        ("def test_mine(): assert False", "", 1),
        pytest.param(
            "import pytest\n@pytest.fixture\ndef f(): 1 / 0\ndef test_mine(f): pass",
            "",
            1,
            marks=LONG,
        ),
        pytest.param(
            "def test_mine(): pass",
            "@pytest.fixture(autouse=True)\ndef bad(request):\n    yield\n    assert 'MET-6' not in request.node.name",
            1,
            marks=LONG,
        ),
        pytest.param(
            "def test_mine(): pass",
            "def pytest_sessionfinish(session):\n    session.testsfailed += 1",
            1,
            marks=LONG,
        ),
        (
            "def test_mine(): pass",
            "def pytest_sessionfinish(session):\n    session.exitstatus = 9",
            9,
        ),
        pytest.param(
            "import pytest\n@pytest.mark.xfail\ndef test_mine(): assert False", "", 2, marks=LONG
        ),
    ],
    ids=[
        "all good",
        "test",
        "fixture",
        "fixture of a check",
        "threshold",
        "code of another plugin",
        "xfail",
    ],
)
def test_the_exit_code_is_never_greener_than_pytests(
    tmp_path: Path, test: str, conftest: str, code: int
) -> None:
    """The verdict's code stands only where nothing but the suite's own checks failed."""
    assert outcome(tmp_path, test, conftest) == code


@pytest.mark.long
def test_two_targets_in_one_folder_of_results_stay_two(tmp_path: Path, profile: str) -> None:
    """A refuted run, then a good one of another target: every result has names of its own, and the first stays red."""
    common = ["--inorder-profile", profile, "--inorder-seed", "5", "--alluredir", "results"]
    first = suite(tmp_path, "--inorder-target", MUTANT, "--inorder-out", "a", *common)
    second = suite(
        tmp_path,
        "--inorder-target",
        "reference",
        "--inorder-examples",
        "5",
        "--inorder-out",
        "b",
        *common,
    )
    assert (first.returncode, second.returncode) == (1, 0), first.stdout + second.stdout
    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (tmp_path / "results").glob("*-result.json")
    ]
    tests = len(all_clauses()) + len(CHECKS)
    for name in ("historyId", "testCaseId", "fullName"):
        assert len({result[name] for result in found}) == len(found) == 2 * tests, name
    # Each of Allure's rows shows its newest result: the failed one of the mutant has a row of its own.
    rows = {
        result["historyId"]: result["status"]
        for result in sorted(found, key=lambda each: each["start"])
    }
    refuted = next(
        each
        for each in found
        if each["name"] == "LSE-1 one owner at a time" and each["status"] == "failed"
    )
    assert rows[refuted["historyId"]] == "failed"
    cli = tmp_path / "a" / "allure-results"
    ours = {
        json.loads(path.read_text(encoding="utf-8"))["historyId"]
        for path in cli.glob("*-result.json")
    }
    assert ours <= rows.keys(), "the command line and pytest say the same of the same test"


def test_a_run_that_could_not_tell_is_2(tmp_path: Path, profile: str) -> None:
    """Two small runs do not reach the floor of every clause."""
    done = suite(
        tmp_path,
        "--inorder-target",
        "reference",
        "--inorder-profile",
        profile,
        "--inorder-examples",
        "1",
    )
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
    assert (done.returncode, words in done.stdout + done.stderr) == (64, True), (
        done.stdout + done.stderr
    )
    assert "Traceback" not in done.stdout + done.stderr


def test_a_chosen_clause_decides_alone(refuted_run: tuple[Result, Path]) -> None:
    """With the others deselected the exit code is about what ran."""
    verdict = open_run(refuted_run[1])
    ready = seam.prepare(MUTANT, None)
    run = Suite(
        ready=ready,
        seed=5,
        examples=None,
        out=refuted_run[1],
        folder=refuted_run[1],
        verdict=verdict,
    )
    assert run.exit_code() == 0, "none of the suite's tests ran"
    run.seen = {"MET-1"}
    assert run.exit_code() == 1
    run.deselected = True
    run.seen = {"MET-1", "ORD-2"}
    assert run.exit_code() == 0
    run.seen.add("LSE-1")
    assert run.exit_code() == 1
