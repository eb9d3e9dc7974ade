"""Allure's own reports, version 2 and 3, of an upheld, a refuted and an inconclusive run, in a real browser.

Allure comes from npm, into the folder of downloaded parts. The screenshots lie with the test's files, or where
INORDER_SHOTS names a folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.parts.places import tools_dir
from conformance.waiting import pass_time, wait_until
from tests.conformance.reports.browser import NAMES, Browser, executable

PACKAGES = ("allure-commandline@2.46.1", "allure@3.18.0")
MUTANT = "mutant:unlock-while-listener-runs"
ONE_CLAUSE = """
title = "One clause"
[clauses]
LSE-1 = { status = "claimed", source = "a test" }
"""
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(executable() is None, reason=f"there is no {' or '.join(NAMES)} in PATH"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm in PATH"),
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no java in PATH"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def commands() -> dict[int, list[str]]:
    """How each version makes a report: `COMMAND RESULTS -o REPORT`."""
    modules = tools_dir() / "allure" / "node_modules"
    two, three = modules / "allure-commandline" / "bin" / "allure", modules / "allure" / "cli.js"
    if not (two.exists() and three.exists()):
        where = ["--no-audit", "--no-fund", "--prefix", str(tools_dir() / "allure")]
        subprocess.run(["npm", "install", *where, *PACKAGES], check=True, timeout=600)
    return {
        2: [str(two), "generate", "--clean"],
        3: ["node", str(three), "awesome"],
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each kind, as the command line leaves it."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "one.toml").write_text(ONE_CLAUSE, encoding="utf-8")
    few = ["--seed", "1", "--examples"]
    asked = {
        "upheld": ["reference", *few, "5", "--profile", str(folder / "one.toml")],
        "refuted": [MUTANT, *few, "6", "--floor", "0"],
        "inconclusive": ["reference", *few, "1"],
    }
    for name, words in asked.items():
        out = folder / name
        CliRunner().invoke(root, ["conform", "--target", *words, "--out", str(out), "--quiet"])
        assert json.loads((out / "verdict.json").read_text())["verdict"] == name
    return {name: folder / name for name in asked}


@pytest.fixture
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for each report: Allure 3 remembers what was looked at, and all files are one site."""
    with Browser(tmp_path_factory.mktemp("browser"), 1400, 1300) as started:
        yield started


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing of it."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of the test's folder: of a file, Allure 3 now and then asks for data that it has in itself."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


def make(command: list[str], results: Path, out: Path) -> None:
    """Write a report."""
    told = subprocess.run(
        [*command, str(results), "-o", str(out)],
        cwd=results.parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr


def shoot(browser: Browser, folder: Path, name: str) -> None:
    kept = Path(os.environ.get("INORDER_SHOTS", folder))
    kept.mkdir(parents=True, exist_ok=True)
    pass_time(1.0)  # what moves has come to rest
    assert browser.shoot(kept / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def says(browser: Browser, *words: str) -> None:
    """The page comes to say all of the words."""

    def missing() -> list[str]:
        text = " ".join(str(browser.run("document.body.innerText")).split())
        return [word for word in words if word not in text]

    assert wait_until(lambda: not missing(), deadline_s=60.0, poll_s=0.3), (
        missing(),
        browser.run("document.body.innerText"),
    )


def click(browser: Browser, words: str) -> None:
    """Click what begins with the words, the innermost of what is shown."""
    begins = f"e => e.textContent.trim().startsWith({json.dumps(words)})"
    script = (
        f"(() => {{ const begins = {begins}; const found = [...document.querySelectorAll('*')]"
        ".find(e => e.offsetParent && begins(e) && ![...e.children].some(begins));"
        " found?.click(); return Boolean(found); })()"
    )
    assert wait_until(lambda: bool(browser.run(script)), deadline_s=60.0, poll_s=0.3), words
    pass_time(0.5)


OVERVIEW = {
    ("upheld", 2): ["UPHELD: 1 upheld", "100%", "Not claimed: does not apply", "reference under"],
    ("upheld", 3): ["UPHELD: 1 upheld", "100%", "reference under"],
    ("refuted", 2): [
        "REFUTED: ",
        f"{MUTANT} under reference",
        "Refuted: a promise was broken",
        "Not exercised: too seldom at stake",
    ],
    ("refuted", 3): ["REFUTED: ", f"{MUTANT} under reference", "LSE-2 one processor at a time"],
    ("inconclusive", 2): [
        "INCONCLUSIVE: ",
        "The run itself: not enough, or wrong",
        "Not exercised: too seldom at stake",
    ],
    ("inconclusive", 3): ["INCONCLUSIVE: ", "MET-6 claimed clauses exercised"],
}
CASE = {
    "refuted": ("lease", "LSE-2 one processor at a time", "Failed"),
    "inconclusive": ("the run itself", "MET-6 claimed clauses exercised", "Broken"),
}
SAID = {
    "refuted": [
        "refuted: c3 began offset 0 of billing/orders/b0/1",
        "swim lanes",
        "replay command",
    ],
    "inconclusive": ["the run itself: not met: claimed clauses exercised: ORD-"],
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("run", ["upheld", "refuted", "inconclusive"])
def test_a_report_says_what_came_of_the_run(
    browser: Browser,
    commands: dict[int, list[str]],
    runs: dict[str, Path],
    served: str,
    tmp_path: Path,
    run: str,
    version: int,
) -> None:
    """On its first page the verdict; on the page of what is not green what happened, how bad it is, and the picture."""
    make(commands[version], runs[run] / "allure-results", tmp_path / "report")
    page = f"{served}/report/index.html"
    browser.open(page)
    says(browser, *OVERVIEW[run, version])
    shoot(browser, tmp_path, f"allure{version}-{run}")
    if run not in CASE:
        return
    family, case, status = CASE[run]
    if version == 2:
        browser.open(f"{page}#suites")
        click(browser, "mutant:" if run == "refuted" else "reference under")
        click(browser, family)
    click(browser, case)
    says(browser, status, case, *SAID[run])
    shoot(browser, tmp_path, f"allure{version}-{run}-case")
    if run == "refuted":
        says(browser, "Severity: critical" if version == 2 else "Critical")
        click(browser, "swim lanes")
        picture = (
            'document.querySelector(\'[src^="data:image/svg"], [src^="blob:"], svg[role=img]\')'
        )
        drawn = f"Boolean({picture}) || document.querySelectorAll('object, iframe, img').length > 0"
        assert wait_until(lambda: bool(browser.run(drawn)), deadline_s=30.0, poll_s=0.3)
        shoot(browser, tmp_path, f"allure{version}-{run}-picture")


def test_a_trend_grows_over_two_builds(commands: dict[int, list[str]], tmp_path: Path) -> None:
    """The history of the first report beside the results of a second run of the series: each clause has two tries."""
    results = tmp_path / "results"
    for number, run in enumerate(("inconclusive", "refuted"), start=1):
        shutil.rmtree(results, ignore_errors=True)
        if number > 1:
            shutil.copytree(tmp_path / "1" / "history", results / "history")
        words = ["--seed", str(number), "--examples", "1", "--name", "nightly", "--quiet"]
        target = MUTANT if run == "refuted" else "reference"
        kept = ["--out", str(tmp_path / run), "--alluredir", str(results)]
        CliRunner().invoke(root, ["conform", "--target", target, *words, *kept])
        make(commands[2], results, tmp_path / str(number))
    trend = json.loads((tmp_path / "2" / "widgets" / "history-trend.json").read_text())
    assert len(trend) == 2
    history = json.loads((tmp_path / "2" / "history" / "history.json").read_text())
    assert {each["statistic"]["total"] for each in history.values()} == {2}
