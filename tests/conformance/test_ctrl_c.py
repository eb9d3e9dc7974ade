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
