"""The program itself, ended by Ctrl-C: its verdict is kept, and nobody that it started is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.reports.view import open_run
from conformance.waiting import wait_until
from specs.errors import EXIT_INCONCLUSIVE
from specs.verdicts.verdict import Ended

DONE = " events"
"""How the line of progress ends that comes after a run."""


def is_empty(group: int) -> bool:
    """Python's own keeper of its resources ends a moment after us."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def interrupted(words: list[str], mark: str, times: int = 1) -> tuple[int, str]:
    """Run it, press Ctrl-C once it has said a line with the mark in it, and again; its exit code, and what it said."""
    with subprocess.Popen(
        [sys.executable, "-m", "inorder", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as program:
        assert program.stdout is not None
        said = ""
        for line in program.stdout:
            said += line
            if mark in line:
                break
        for _ in range(times):
            os.killpg(program.pid, signal.SIGINT)
            if times > 1:
                said += program.stdout.readline()  # that the first one was heard
        said += program.communicate(timeout=200)[0]
    assert wait_until(lambda: is_empty(program.pid), deadline_s=20)
    return program.returncode, said


@pytest.mark.parametrize(
    ("target", "mark", "runs"),
    [
        ("reference+tcp", "2 of 6", 1),
        pytest.param("reference+tcp", "waiting until", 2, marks=pytest.mark.long),
        pytest.param("rocketmq-local:5.4.0", "2 of 6", 1, marks=pytest.mark.long),
        pytest.param("redis-local:7.0.15", "waiting until", 1, marks=pytest.mark.long),
    ],
)
def test_on_sockets_too_what_was_searched_until_then_is_judged(
    tmp_path: Path, target: str, mark: str, runs: int
) -> None:
    """While raw clients ask, and while a plan is being done."""
    out = tmp_path / "run"
    words = ["conform", "--target", target, "--seed", "5", "--examples", "6", "--floor", "0"]
    code, said = interrupted([*words, "--out", str(out)], mark)
    assert code == EXIT_INCONCLUSIVE, said
    verdict = open_run(out)
    assert verdict.search is not None
    assert (verdict.search.ended, verdict.search.runs) == (Ended.INTERRUPTED, runs)
    assert (out / "report.html").is_file()


def test_the_second_one_ends_at_once(tmp_path: Path) -> None:
    """And leaves no verdict."""
    out = tmp_path / "run"
    words = ["conform", "--target", "reference+tcp", "--seed", "5", "--out", str(out)]
    code, said = interrupted(words, "2 of 20", times=2)
    assert code == 128 + signal.SIGINT, said
    assert not (out / "verdict.json").exists()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_search_that_is_cut_short_is_kept(tmp_path: Path, workers: int) -> None:
    out = tmp_path / "run"
    words = ["conform", "--target", "reference", "--seed", "5", "--examples", "20"]
    words += ["--workers", str(workers), "--floor", "0", "--out", str(out)]
    with subprocess.Popen(
        [sys.executable, "-m", "inorder", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        # A shell that puts a command into the background has it ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as program:
        assert program.stderr is not None
        for line in program.stderr:
            if line.rstrip().endswith(DONE):
                break
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does
        told, asked = program.communicate(timeout=200)
    assert program.returncode == EXIT_INCONCLUSIVE, asked
    assert "the search was cut short" in " ".join(told.split())
    verdict = open_run(out)
    assert verdict.search is not None
    assert (verdict.search.ended, verdict.search.workers) == (Ended.INTERRUPTED, workers)
    assert 1 <= verdict.search.runs < 20
    assert wait_until(lambda: is_empty(program.pid), deadline_s=20)
