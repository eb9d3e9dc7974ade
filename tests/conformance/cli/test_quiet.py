"""`--quiet`, `--only-failures`, `--name` and `--alluredir`: what is printed, and what is written for Allure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
HISTORY = """
    0ms      alice  locks  billing/orders/b0/3   ok
    59999ms  bob    locks  billing/orders/b0/3   {}
"""
LESS = ["--quiet", "-q", "--only-failures"]


@pytest.fixture
def histories(tmp_path: Path) -> dict[str, str]:
    """One that breaks LSE-1 and one that keeps it."""
    for name, bob in (("broken", "ok"), ("kept", "refused")):
        (tmp_path / f"{name}.txt").write_text(HISTORY.format(bob), encoding="utf-8")
    return {name: str(tmp_path / f"{name}.txt") for name in ("broken", "kept")}


@pytest.mark.parametrize("option", LESS)
def test_a_green_run_is_one_sentence(
    run: Run, histories: dict[str, str], profile: str, option: str
) -> None:
    """The verdict, and with --quiet nothing else."""
    done = run("check", histories["kept"], "--profile", profile, option)
    assert done.exit_code == 0
    assert done.stdout.startswith("UPHELD  offline under ")
    assert len(done.stdout.split("\n\n")) == 1
    assert ("judging" in done.stderr) == (option == "--only-failures")


@pytest.mark.parametrize("option", LESS)
def test_a_red_run_tells_what_broke(
    run: Run, histories: dict[str, str], profile: str, option: str
) -> None:
    """The story and the verdict, and no table of what is green or set aside."""
    done = run("check", histories["broken"], "--profile", profile, option)
    whole = run("check", histories["broken"], "--profile", profile)
    assert (done.exit_code, whole.exit_code) == (1, 1)
    assert done.stdout.startswith("REFUTED  LSE-1")
    story = iter(whole.stdout.splitlines())
    assert all(line in story for line in done.stdout.splitlines()), "in their order"
    for words in ("not claimed   ", "checks of the run", "not promised by"):
        assert (words in whole.stdout, words in done.stdout) == (True, False)


@pytest.mark.parametrize("option", LESS)
def test_json_is_whole(run: Run, histories: dict[str, str], profile: str, option: str) -> None:
    """What is left out is left out for people."""
    words = ("check", histories["broken"], "--profile", profile, "--format", "json")
    assert run(*words, option).stdout == run(*words).stdout


def test_a_search_says_nothing_of_its_work(run: Run, profile: str, tmp_path: Path) -> None:
    """Where it is red: where it is kept and how to see it again; where it is green nothing."""
    words = ("--profile", profile, "--seed", "5", "--quiet", "--examples", "2")
    red = run("conform", "--target", "mutant:expiry-ignored", *words, "--out", str(tmp_path / "a"))
    assert red.exit_code == 1
    assert [line.partition(" ")[0] for line in red.stderr.splitlines()] == ["kept", "replay:"]
    green = run(
        "conform", "--target", "reference", *words, "--out", str(tmp_path / "b"), "--floor", "0"
    )
    assert (green.exit_code, green.stderr) == (0, "")
    assert green.stdout.startswith("UPHELD  ")


@pytest.mark.parametrize("option", LESS)
def test_a_report_of_several_tells_the_red_ones(
    run: Run, histories: dict[str, str], profile: str, tmp_path: Path, option: str
) -> None:
    """A sentence for each, and a story for what broke."""
    runs = []
    for name, path in histories.items():
        runs.append(str(tmp_path / name))
        run("check", path, "--profile", profile, "--out", runs[-1])
    told = run("report", *runs, option).stdout
    assert next(line for line in told.splitlines() if "under" in line).startswith("REFUTED")
    assert (told.count("UPHELD  "), told.count("REFUTED  LSE-1")) == (1, 1)
    assert "target" not in told


def test_names_and_folders_reach_allure(
    run: Run, histories: dict[str, str], profile: str, tmp_path: Path
) -> None:
    """Two names in one folder are two series; the same once more is told; `report` writes the same results."""
    shared = tmp_path / "shared"

    def check(name: str) -> Result:
        words = ("--profile", profile, "--name", name, "--alluredir", str(shared))
        return run("check", histories["broken"], *words, "--out", str(tmp_path / name))

    def results(folder: Path) -> set[str]:
        files = folder.glob("*-result.json")
        return {json.loads(path.read_text(encoding="utf-8"))["historyId"] for path in files}

    assert "already" not in check("one").stderr
    first = results(shared)
    assert "already" not in check("two").stderr
    assert len(results(shared)) == 2 * len(first)
    again = check("two")
    assert "holds results of two already" in again.stderr
    told = tmp_path / "told"
    done = run("report", str(tmp_path / "one"), "--format", "allure", "--alluredir", str(told))
    assert (done.exit_code, done.stdout) == (0, "")
    assert results(told) == first
    junit = run("report", str(tmp_path / "one"), "--format", "junit").stdout
    assert 'classname="inorder.one.lease"' in junit
