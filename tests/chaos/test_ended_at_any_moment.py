"""Chaos on real parts, ended by Ctrl-C or SIGKILL wherever it is: nobody that it started is left, and no mount."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import psutil
import pytest

from conformance.waiting import wait_until
from specs.errors import EXIT_INCONCLUSIVE, EXIT_REFUTED

MARK = "INORDER_TEST_MARK"
LATEST_S = 25.0
"""By then both have broken something."""
CTRL_C = 130

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("ended-at-any-moment")]


def left_behind(mark: str) -> list[str]:
    """Processes that have inherited the program's environment, and mounts in its folder."""
    found = [line for line in Path("/proc/mounts").read_text().splitlines() if mark in line]
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(
    "words",
    [
        "chaos consumer-paused link-down --target reference+tcp",
        "chaos frames-overtake look-up-lost --target reference+tcp",
        "chaos power-cut broker-killed --target rocketmq-local:5.4.0",
        "hunt --minutes 5 --target rocketmq-local:5.4.0",
    ],
)
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_nobody_is_left(tmp_path: Path, words: str, by: signal.Signals, number: int) -> None:
    moment_s = Random(f"{words} {number}").uniform(0.5, LATEST_S)
    mark = str(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-m", "inorder", *words.split(), "--out", str(tmp_path / "run")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        # Coverage takes a lock at each new file, and an interrupt just then has it wait for itself for ever.
        env={**os.environ, MARK: mark, "COVERAGE_PROCESS_CONFIG": ""},
        # A shell that puts a command into the background has it ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as program:
        try:
            program.wait(moment_s)
        except subprocess.TimeoutExpired:
            # Before it has begun Python itself answers a Ctrl-C, if anybody does.
            assert by is signal.SIGKILL or wait_until((tmp_path / "run").exists, deadline_s=60)
            os.killpg(program.pid, by) if by is signal.SIGINT else program.kill()
        try:
            _, told = program.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            program.kill()  # or leaving the block waits for it
            raise
    assert "Traceback" not in told
    hunts = (EXIT_INCONCLUSIVE, EXIT_REFUTED)
    assert program.returncode in ((-by,) if by is signal.SIGKILL else (CTRL_C, *hunts))
    assert wait_until(lambda: not left_behind(mark), deadline_s=30), left_behind(mark)
