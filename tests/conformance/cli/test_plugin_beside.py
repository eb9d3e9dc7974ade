"""The suite beside a user's own tests: on workers of pytest-xdist, with its fixtures, and when it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.plugin import CHECKS
from conformance.waiting import wait_until
from specs.clauses.catalogue import all_clauses
from specs.errors import EXIT_USAGE

TESTS = len(all_clauses()) + len(CHECKS)

# A run that takes no time: two owners of one lane, judged and saved as every run is.
CONFTEST = """
import os
import time
from dataclasses import replace
from pathlib import Path

from conformance import plugin
from conformance.reports.occasion import begin
from conformance.reports.saving import save
from specs.clauses.catalogue import all_clauses
from specs.errors import UsageError
from specs.history.store import write_history
from specs.history.text import parse_history
from specs.profiles import Claim, Profile
from specs.verdicts.examine import examine
from specs.verdicts.verdict import conclude

HERE = Path(__file__).parent
HISTORY = '''
    0ms      alice  locks  billing/orders/b0/3   ok
    59999ms  bob    locks  billing/orders/b0/3   {bob}
'''


def note(file, words):
    with (HERE / file).open("a") as log:
        log.write(f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')} {words}\\n")


class Ready:
    target, on_the_wire = "stand-in", False

    class profile:
        name = "p"

    def run(self, *, out, seed, name, **_):
        note("runs.log", os.getpid())
        SPECIAL
        info, rows = parse_history(HISTORY.format(bob=BOB))
        info = replace(info, seed=seed, target="stand-in")
        write_history(out, info, rows)
        profile = Profile("p", "p", {"LSE-1": Claim("claimed", "a test")})
        found = examine(rows, info, all_clauses())
        verdict = conclude(found, info, profile, require_exercised=False)
        return save(verdict, out, occasion=begin(name)())


def pytest_configure(config):
    config.pluginmanager.register(Noting())
    suite = config.stash.get(plugin.KEY, None)
    if suite is not None:
        suite.ready = Ready()


class Noting:
    # Registered by hand: a conftest's own hooks hear nothing of tests that lie elsewhere.

    def pytest_runtest_logstart(self, nodeid):
        note("tests.log", nodeid)
"""
MINE = "".join(f"def test_{number}(): pass\n\n" for number in range(12))
WITH_FIXTURES = """
def test_verdict(inorder_verdict, inorder_folder, inorder_history):
    assert [each.id for each in inorder_verdict.failures] == ["LSE-1"]
    assert (inorder_folder / "report.html").is_file()
    assert [row.client_id for row in inorder_history.rows()] == ["alice", "bob"]
"""


def arguments(*more: str) -> list[str]:
    words = ["--pyargs", "conformance.suite", "test_mine.py", "--inorder-target", "reference"]
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", *words]
    return [*command, "--inorder-seed", "7", "--inorder-out", "run", *more]


def project(folder: Path, mine: str, *, bob: str = "ok", special: str = "pass") -> None:
    """A user's project with a test file of hers, and the run's stand-in."""
    (folder / "test_mine.py").write_text(mine, encoding="utf-8")
    conftest = CONFTEST.replace("SPECIAL", special).replace("BOB", repr(bob))
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")


# As in a shell: what a worker of these tests is told of itself is none of the project's business.
ENVIRONMENT = {name: word for name, word in os.environ.items() if "XDIST" not in name}
ENVIRONMENT |= {"PYTHONUTF8": "1", "COLUMNS": "100"}


def session(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """pytest in the project."""
    return subprocess.run(
        arguments(*more),
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def logged(folder: Path, file: str) -> list[tuple[str, str]]:
    lines = (folder / file).read_text(encoding="utf-8").splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*-result.json")]


def told(found: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """What is the same in a result, whichever way it came into Allure."""
    return sorted(
        (
            each["historyId"],
            each["uuid"],
            each["name"],
            each["status"],
            json.dumps([each["labels"], each.get("statusDetails"), each["descriptionHtml"]]),
            json.dumps([each["start"], each["stop"], each.get("attachments")]),
        )
        for each in found
    )


LONG = pytest.mark.long


@pytest.mark.long
@pytest.mark.parametrize("workers", [*"0123"])
def test_one_worker_runs_the_suite_and_the_others_the_user_s(tmp_path: Path, workers: str) -> None:
    """One run, each test once, the verdict's exit code; and Allure is told what `inorder conform` tells it.

    The user's tests may ask for the run, on whichever worker they lie.
    """
    project(tmp_path, MINE + WITH_FIXTURES)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = -n {workers}\n", encoding="utf-8")
    done = session(tmp_path, "--alluredir", "results")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "REFUTED  stand-in under p" in done.stdout
    assert len(logged(tmp_path, "runs.log")) == 1
    tests = [each for each in logged(tmp_path, "tests.log") if workers == "0" or each[0] != "main"]
    assert len({test for _, test in tests}) == len(tests) == TESTS + 13
    ran = {worker for worker, test in tests if "test_clauses.py" in test}
    assert len(ran) == 1
    if workers not in ("0", "1"):
        others = {worker for worker, test in tests if "test_mine.py" in test}
        assert others - ran, "the others do not wait for the suite"
    ours = [each for each in results(tmp_path / "results") if "test_mine" not in each["fullName"]]
    assert told(ours) == told(results(tmp_path / "run" / "allure-results"))
    for name in ("environment.properties", "categories.json", "executor.json"):
        both = [tmp_path / "results" / name, tmp_path / "run" / "allure-results" / name]
        assert both[0].read_bytes() == both[1].read_bytes()


@pytest.mark.long
def test_without_the_suite_s_tests_the_user_s_own_decide(tmp_path: Path) -> None:
    """She asks for the verdict of a refuted run and is content; no run at all where nobody asks."""
    project(tmp_path, WITH_FIXTURES)
    words = ["-p", "no:cacheprovider", "test_mine.py", "--inorder-target", "reference"]
    command = [sys.executable, "-P", "-m", "pytest", *words]

    def ended(*more: str) -> int:
        return subprocess.run(
            [*command, *more], cwd=tmp_path, env=ENVIRONMENT, timeout=200, check=False
        ).returncode

    assert ended("--inorder-out", "run") == 0
    assert len(logged(tmp_path, "runs.log")) == 1
    (tmp_path / "test_mine.py").write_text("def test_good(): pass\n", encoding="utf-8")
    assert ended() == 0
    assert len(logged(tmp_path, "runs.log")) == 1


def test_without_a_target_the_fixtures_skip(tmp_path: Path) -> None:
    """A project's tests run where nothing is to be judged."""
    (tmp_path / "test_mine.py").write_text(WITH_FIXTURES, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-rs"]
    done = subprocess.run(
        command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "no --inorder-target says what to judge" in done.stdout) == (0, True)


@pytest.mark.long
def test_a_user_s_failure_beside_an_upheld_run_is_red(tmp_path: Path) -> None:
    """Also on another worker than the suite's."""
    project(tmp_path, "def test_bad(): assert 1 == 2\n", bob="refused")
    done = session(tmp_path, "-n", "2", "--alluredir", "results")
    assert "UPHELD  stand-in" in done.stdout, done.stdout + done.stderr
    assert (done.returncode, "1 failed" in done.stdout) == (1, True)
    failed = [each["name"] for each in results(tmp_path / "results") if each["status"] == "failed"]
    assert failed == ["test_bad"]


@LONG
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_that_cannot_be_made_is_one_sentence(tmp_path: Path, workers: str) -> None:
    """And its own exit code, whoever made it."""
    project(tmp_path, MINE, special="raise UsageError('the stand-in has no use for this')")
    done = session(tmp_path, "-n", workers)
    assert done.returncode == EXIT_USAGE, done.stdout + done.stderr
    assert "the stand-in has no use for this" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(logged(tmp_path, "runs.log")) == 1


@LONG
@pytest.mark.parametrize("workers", ["0", "2"])
def test_ctrl_c_ends_the_session_with_130(tmp_path: Path, workers: str) -> None:
    """In the middle of the run; no verdict is told, and no process stays."""
    project(tmp_path, MINE, special="time.sleep(100)")
    started = subprocess.Popen(
        arguments("-n", workers, "--alluredir", "results"),
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert wait_until((tmp_path / "runs.log").exists, deadline_s=100.0)
        os.killpg(started.pid, signal.SIGINT)
        output, _ = started.communicate(timeout=60)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
    assert started.returncode == 130, output
    assert "UPHELD" not in output
    maker = int(logged(tmp_path, "runs.log")[0][1])
    assert wait_until(lambda: not Path(f"/proc/{maker}").exists(), deadline_s=20.0)


@LONG
def test_a_fixture_that_fails_is_seen_in_allure(tmp_path: Path) -> None:
    """A clause that is upheld does not hide that its test broke on the way."""
    project(tmp_path, MINE, bob="refused")
    broken = (
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef bad(request):\n    yield\n"
        "    assert 'LSE-1 ' not in request.node.name\n"
    )
    conftest = tmp_path / "conftest.py"
    conftest.write_text(conftest.read_text() + broken, encoding="utf-8")
    done = session(tmp_path, "--alluredir", "results")
    assert done.returncode == 1, done.stdout
    (found,) = [each for each in results(tmp_path / "results") if each["name"].startswith("LSE-1 ")]
    assert (found["status"], "assert" in found["statusDetails"]["message"]) == ("failed", True)
